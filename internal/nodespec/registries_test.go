package nodespec

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
)

// testCertificate is the self-signed certificate of an authority.
const testCertificate = `-----BEGIN CERTIFICATE-----
MIIBWDCB/6ADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMTCW1pcnJvci1j
YTAeFw0yNjAxMDEwMDAwMDBaFw00NjAxMDEwMDAwMDBaMBQxEjAQBgNVBAMTCW1p
cnJvci1jYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKDAIgUIXMo66B80hco5
mH1LWlc4va45yIK8lb7QKFMIgns6LzYQAvcykzlCJsrZhKGk4BZEZKTLdBTticpR
/wKjQjBAMA4GA1UdDwEB/wQEAwICBDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQW
BBRmEADd/gDNJngmIgf4G3C3VeInazAKBggqhkjOPQQDAgNIADBFAiEAszc59axz
1MmHeG/Sv8rwzZjxpwE3Bp1B7lwX/EgS0iUCICWV30pUVQXS1U2NFxBOX8rz4ydp
cceNZT9puTvSWvfW
-----END CERTIFICATE-----
`

// hostsOf returns the hosts.toml of a host, decoded as by containerd's loader, and the file.
func hostsOf(t testing.TB, in Inputs, dir string) (hostsTable, File) {
	t.Helper()
	path := `C:\k\containerd\registries\` + dir + `\hosts.toml`
	files := containerdFiles(in)
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("there is no file %s", path)
	}
	var table hostsTable
	if err := toml.NewDecoder(strings.NewReader(string(files[i].Bytes()))).DisallowUnknownFields().Decode(&table); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, files[i].Bytes())
	}
	return table, files[i]
}

type hostsTable struct {
	Server string `toml:"server"`
	hostsEndpoint
	Hosts map[string]hostsEndpoint `toml:"host"`
}

type hostsEndpoint struct {
	Capabilities []string          `toml:"capabilities"`
	CA           string            `toml:"ca"`
	SkipVerify   bool              `toml:"skip_verify"`
	OverridePath bool              `toml:"override_path"`
	Header       map[string]string `toml:"header"`
}

func withRegistries(registries ...Registry) Inputs {
	in := testInputs()
	in.Cluster.Registries.Hosts = registries
	return in
}

func TestRegistries(t *testing.T) {
	t.Run("a cluster that says nothing of registries has none configured", func(t *testing.T) {
		if files := registryFiles(testInputs()); len(files) != 0 {
			t.Errorf("%v", files)
		}
	})
	t.Run("mirrors are asked in their order, for tags only where the cluster says so, and then the registry", func(t *testing.T) {
		in := withRegistries(Registry{Host: "registry.example.com:5000", Mirrors: []Mirror{
			{Host: "z.example.com", Path: "x/y"}, {Host: "a.example.com:8443", Tags: true}, {Host: "m.example.com"},
		}})
		table, file := hostsOf(t, in, "registry.example.com_5000_")
		var positions []int
		for _, url := range []string{"https://z.example.com/v2/x/y", "https://a.example.com:8443/v2", "https://m.example.com/v2"} {
			if !table.Hosts[url].OverridePath {
				t.Errorf("%s: containerd would change the path", url)
			}
			positions = append(positions, strings.Index(file.Content, "[host.\""+url+"\"]"))
		}
		if !slices.IsSorted(positions) || positions[0] < 0 {
			t.Errorf("the order is another:\n%s", file.Content)
		}
		if got := table.Hosts["https://z.example.com/v2/x/y"].Capabilities; !slices.Equal(got, []string{"pull"}) {
			t.Errorf("a mirror of digests has %v", got)
		}
		if got := table.Hosts["https://a.example.com:8443/v2"].Capabilities; !slices.Equal(got, []string{"pull", "resolve"}) {
			t.Errorf("a mirror of tags has %v", got)
		}
		if table.Server != "" || len(table.Capabilities) != 0 {
			t.Errorf("the registry itself is %q with %v", table.Server, table.Capabilities)
		}
	})
	t.Run("a mirror that is named for tags and for digests is one mirror", func(t *testing.T) {
		in := withRegistries(Registry{Host: "a.example.com", Mirrors: []Mirror{{Host: "m.example.com"}, {Host: "n.example.com"}, {Host: "m.example.com", Tags: true}}})
		table, _ := hostsOf(t, in, "a.example.com")
		if len(table.Hosts) != 2 || !slices.Contains(table.Hosts["https://m.example.com/v2"].Capabilities, "resolve") {
			t.Errorf("%+v", table.Hosts)
		}
	})
	t.Run("the credentials of a mirror are for administrators only", func(t *testing.T) {
		in := withRegistries(Registry{Host: "a.example.com", Mirrors: []Mirror{{Host: "m.example.com", Authorization: "dXNlcjpwYXNz"}}})
		table, file := hostsOf(t, in, "a.example.com")
		if table.Hosts["https://m.example.com/v2"].Header["Authorization"] != "Basic dXNlcjpwYXNz" {
			t.Errorf("%+v", table.Hosts)
		}
		if file.Access != host.AccessAdministrators || file.Content != "" || strings.Contains(fmt.Sprintf("%v %+v", file, file), "dXNlc") {
			t.Errorf("%+v", file)
		}
	})
	t.Run("an insecure registry is asked with TLS first, unverified, and then without", func(t *testing.T) {
		in := withRegistries(Registry{Host: "a.example.com:5000", Endpoint: Endpoint{Insecure: true},
			Mirrors: []Mirror{{Host: "m.example.com", Endpoint: Endpoint{Insecure: true}}}})
		table, _ := hostsOf(t, in, "a.example.com_5000_")
		if table.Server != "http://a.example.com:5000" || !table.SkipVerify || !table.Hosts["http://m.example.com/v2"].SkipVerify {
			t.Errorf("%+v", table)
		}
	})
	t.Run("an authority lies beside the file that names it, and an invalid one is left out", func(t *testing.T) {
		in := withRegistries(Registry{Host: "a.example.com", Endpoint: Endpoint{CA: testCertificate},
			Mirrors: []Mirror{{Host: "m.example.com", Endpoint: Endpoint{CA: testCertificate}}, {Host: "n.example.com", Endpoint: Endpoint{CA: "none"}}}})
		table, _ := hostsOf(t, in, "a.example.com")
		files := registryFiles(in)
		if len(files) != 2 || files[0].Path != `C:\k\containerd\registries\a.example.com\`+table.CA || files[0].Content != testCertificate {
			t.Errorf("%+v", files)
		}
		if table.Hosts["https://m.example.com/v2"].CA != table.CA || table.Hosts["https://n.example.com/v2"].CA != "" {
			t.Errorf("%+v", table)
		}
	})
	t.Run("images of docker.io come from where they are", func(t *testing.T) {
		if table, _ := hostsOf(t, withRegistries(Registry{Host: "docker.io", Endpoint: Endpoint{Insecure: true}}), "docker.io"); table.Server != "http://registry-1.docker.io" {
			t.Error(table.Server)
		}
	})
	t.Run("images of a mirror on docker.io are there, too", func(t *testing.T) {
		table, _ := hostsOf(t, withRegistries(Registry{Host: "quay.io", Mirrors: []Mirror{{Host: "docker.io", Path: "copies"}, {Host: "registry-1.docker.io", Path: "copies"}}}), "quay.io")
		if _, ok := table.Hosts["https://registry-1.docker.io/v2/copies"]; !ok {
			t.Errorf("%+v", table.Hosts)
		}
	})
	t.Run("a blocked registry and its mirrors are never asked, and the error says why", func(t *testing.T) {
		table, _ := hostsOf(t, withRegistries(Registry{Host: "a.example.com", Blocked: true, Mirrors: []Mirror{{Host: "m.example.com"}}}), "a.example.com")
		if table.Server != "https://blocked-by-image-config.invalid" || len(table.Hosts) != 0 {
			t.Errorf("%+v", table)
		}
	})
	t.Run("a source that must not be contacted is not", func(t *testing.T) {
		table, _ := hostsOf(t, withRegistries(Registry{Host: "a.example.com", NeverContact: true, Mirrors: []Mirror{{Host: "m.example.com"}}}), "a.example.com")
		if !strings.HasSuffix(table.Server, ".invalid") || len(table.Hosts) != 1 {
			t.Errorf("%+v", table)
		}
	})
}

func TestOnlyAllowedRegistries(t *testing.T) {
	in := withRegistries(
		Registry{Host: "allowed.example.com", Allowed: true}, Registry{Host: "blocked.example.com",
			Allowed: true, Blocked: true},
		Registry{Host: "mirrored.example.com", Mirrors: []Mirror{{Host: "m.example.com"}}},
	)
	in.Cluster.Registries.OnlyAllowed = true
	t.Run("every other registry is blocked", func(t *testing.T) {
		for _, dir := range []string{"_default", "blocked.example.com", "mirrored.example.com"} {
			if table, _ := hostsOf(t, in, dir); !strings.HasSuffix(table.Server, ".invalid") || len(table.Hosts) != 0 {
				t.Errorf("%s: %+v", dir, table)
			}
		}
	})
	t.Run("an allowed one has a file that is not empty, so that containerd does not take the default", func(t *testing.T) {
		if table, file := hostsOf(t, in, "allowed.example.com"); table.Server != "" || file.Content == "" {
			t.Errorf("%+v", table)
		}
	})
	t.Run("the image that every pod needs can be pulled", func(t *testing.T) {
		if table, _ := hostsOf(t, in, "mcr.microsoft.com"); table.Server != "" {
			t.Error(table.Server)
		}
		other := in
		other.PauseImage = "mirror.example.com:5000/pause:3.10"
		if table, _ := hostsOf(t, other, "mirror.example.com_5000_"); table.Server != "" {
			t.Error(table.Server)
		}
	})
	t.Run("what the cluster said is left as it is", func(t *testing.T) {
		if in.Cluster.Registries.Hosts[2].Blocked || len(in.Cluster.Registries.Hosts) != 3 {
			t.Errorf("%+v", in.Cluster.Registries.Hosts)
		}
	})
}

// fullRegistries returns the inputs of a cluster with all registry settings.
func fullRegistries() Inputs {
	in := testInputs()
	in.Cluster.Registries = Registries{
		OnlyAllowed: true,
		Hosts: []Registry{
			{Host: "blocked.example.com", Allowed: true, Blocked: true},
			{Host: "docker.io", Allowed: true},
			{Host: "insecure.example.com:5000", Allowed: true, Endpoint: Endpoint{Insecure: true}},
			{Host: "private.example.com", Allowed: true, Endpoint: Endpoint{CA: testCertificate}},
			{Host: "quay.io", Allowed: true, Mirrors: []Mirror{
				{Host: "second.example.com:5000", Path: "mirrors/quay", Authorization: "bWlycm9yOnNlY3JldA==",
					Endpoint: Endpoint{CA: testCertificate}},
				{Host: "first.example.com", Tags: true},
				{Host: "plain.example.com:8080", Path: "q", Endpoint: Endpoint{Insecure: true}},
			}},
			{Host: "registry.example.com:5000", Allowed: true, NeverContact: true,
				Mirrors: []Mirror{{Host: "first.example.com", Path: "x"}}},
		},
		Credentials: []Credential{{Registry: "quay.io", Auth: "cXVheTpzZWNyZXQ="},
			{Registry: "quay.io/org", Auth: "b3JnOnBhc3M="},
			{Registry: "parts.example.com/org", Auth: "b3JnOnBhc3M="}, {Registry: "private.example.com:5000",
				Auth: "dXNlcjpwYXNzd29yZA=="}},
	}
	return in
}

// Every byte written to a host is compared. payload/containerd and lab/controlplane/kubelet load these files with
// the loaders of the programs.
func TestGoldenRegistries(t *testing.T) {
	root := filepath.Join("testdata", "registries")
	for _, file := range registryFiles(fullRegistries()) {
		name := strings.TrimPrefix(strings.TrimPrefix(file.Path, registriesDirectory+`\`), `C:\var\lib\kubelet\`)
		compareGolden(t, filepath.Join(root, filepath.FromSlash(strings.ReplaceAll(name, `\`, "/"))), string(file.Bytes()))
	}
}

// Registries that are never contacted get no credentials, and values that are not base64 are ignored.
func TestKubeletCredentials(t *testing.T) {
	in := testInputs()
	in.Cluster.Registries.Credentials = []Credential{
		{Registry: "never.example.com/org", Auth: "dXNlcjpwYXNz"}, {Registry: "blocked.example.com", Auth: "dXNlcjpwYXNz"},
		{Registry: "quay.io", Auth: "dXNlcjpwYXNz"}, {Registry: "registry.example.com:5000/org", Auth: "b3RoZXI6cGFzcw=="},
		{Registry: "broken.example.com", Auth: "{"},
	}
	in.Cluster.Registries.Hosts = []Registry{{Host: "blocked.example.com", Blocked: true},
		{Host: "never.example.com", NeverContact: true}}
	files := containerdFiles(in)
	file := files[len(files)-1]
	if file.Path != `C:\var\lib\kubelet\config.json` || file.Access != host.AccessAdministrators || file.Content != "" {
		t.Fatalf("%+v", file)
	}
	var config struct {
		Auths map[string]struct{ Auth string }
	}
	if err := json.Unmarshal(file.Bytes(), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Auths) != 2 || config.Auths["quay.io"].Auth != "dXNlcjpwYXNz" ||
		config.Auths["registry.example.com:5000/org"].Auth == "" {
		t.Errorf("%d registries", len(config.Auths))
	}
}

// containerd would send the kubelet's credentials for a registry to the registry's mirrors too.
func TestRegistries_CredentialsNotSentToMirrors(t *testing.T) {
	for name, registry := range map[string]string{"quay.io": "quay.io", "index.docker.io": "docker.io",
		"registry.example.com:5000": "registry.example.com:5000"} {
		t.Run(name, func(t *testing.T) {
			in := withRegistries(Registry{Host: registry, Mirrors: []Mirror{{Host: "m.example.com"}}})
			in.Cluster.Registries.Credentials = []Credential{{Registry: name + "/part", Auth: "b3JnOnBhc3M="},
				{Registry: name, Auth: "dXNlcjpwYXNz"}}
			table, file := hostsOf(t, in, registryDirectoryName(registry))
			if table.Header["Authorization"] != "Basic dXNlcjpwYXNz" || table.Hosts["https://m.example.com/v2"].Header != nil ||
				file.Access != host.AccessAdministrators {
				t.Errorf("%+v", table)
			}
			for _, file := range registryFiles(in) {
				if file.Path == kubeletCredentialsFile {
					t.Errorf("the kubelet has\n%s", file.Bytes())
				}
			}
			in.Cluster.Registries.Hosts[0].NeverContact = true
			if table, _ := hostsOf(t, in, registryDirectoryName(registry)); table.Header != nil {
				t.Error("credentials for a registry that is never asked")
			}
		})
	}
}

func TestExpressMirror(t *testing.T) {
	for _, test := range []struct {
		source, mirror         string
		sourceHost, host, path string
		ok                     bool
	}{
		{"registry.example.com/org/repo", "mirror.local:5000/x/org/repo", "registry.example.com",
			"mirror.local:5000", "x", true},
		{"registry.example.com/org", "mirror.local/org", "registry.example.com", "mirror.local", "", true},
		{"registry.example.com", "mirror.local/a/b", "registry.example.com", "mirror.local", "a/b", true},
		{"registry.example.com:5000", "10.0.0.1:5000", "registry.example.com:5000", "10.0.0.1:5000", "", true},
		{"registry.example.com", "[fd00::1]:5000/x", "registry.example.com", "[fd00::1]:5000", "x", true},
		{source: "registry.example.com/org", mirror: "mirror.local/forg"},
		{source: "registry.example.com/org", mirror: "mirror.local/other"},
		{source: "registry.example.com/org", mirror: "mirror.local"},
		{source: "*.example.com", mirror: "mirror.local"},
		{source: "con.example.com", mirror: "mirror.local"},
		{source: "registry.example.com", mirror: "mirror.local/../x"},
		{source: "registry.example.com", mirror: "mirror.local/x/"},
		{source: "registry.example.com/", mirror: "mirror.local//"},
		{source: "registry.example.com", mirror: `mirror.local"]`},
		{source: "", mirror: ""},
	} {
		t.Run(test.mirror+" for "+test.source, func(t *testing.T) {
			sourceHost, host, path, ok := ExpressMirror(test.source, test.mirror)
			if sourceHost != test.sourceHost || host != test.host || path != test.path || ok != test.ok {
				t.Errorf("%q, %q, %q, %v", sourceHost, host, path, ok)
			}
		})
	}
}

func TestRegistryHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"quay.io": true, "localhost:5000": true, "10.0.0.1": true, "a-b.example.com:443": true, "con:5000": true,
		"console.example.com": true,
		"":                    false, "*.example.com": false, "CON": false, "con": false, "con.example.com": false,
		"con.example.com:5000": false, "nul": false,
		"lpt9.x": false, "com0": false, "a.": false, "a..b": false, "a b": false, "-a": false, `a\b`: false,
		"a/b": false, "a:0": false,
		"a:65536": false, "a:": false, "a:5000:1": false, "a:05": false, "[fd00::1]": false, "_default": false,
		"A.example.com":                      false,
		strings.Repeat("a.", 124) + "b:5000": true, strings.Repeat("a.", 125) + "b:5000": false, // NTFS: 255 characters
		strings.Repeat("a", 64): false, "ä.example.com": false,
	} {
		if got := IsRegistryHost(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestMatchesWildcard(t *testing.T) {
	for _, test := range []struct {
		pattern, host string
		want          bool
	}{
		{"*.example.com", "a.example.com", true}, {"*.example.com", "a.b.example.com:5000", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "badexample.com", false}, {"a.example.com", "a.example.com", false}, {"*.", "a.", false},
	} {
		if got := IsWildcardMatch(test.pattern, test.host); got != test.want {
			t.Errorf("%s of %s: %v", test.host, test.pattern, got)
		}
	}
}

// registryFile matches a legal path below the directory of the registries: no device, no part that ends in a dot,
// no path traversal.
var registryFile = regexp.MustCompile(`^C:\\k\\containerd\\registries\\(_default|[a-z0-9]([a-z0-9.-]*[a-z0-9])?(_[0-9]+_)?)\\(hosts\.toml|ca-[0-9a-f]{12}\.pem)$`)

// checkRegistryFiles checks the invariants for arbitrary cluster settings.
func checkRegistryFiles(t interface{ Fatalf(string, ...any) }, in Inputs) {
	folders := map[string]bool{}
	for _, directory := range containerdDirectories(in) {
		if folders[strings.ToLower(directory.Path)] {
			t.Fatalf("folder %s is listed twice", directory.Path)
		}
		folders[strings.ToLower(directory.Path)] = true
	}
	paths := map[string]bool{}
	for _, file := range registryFiles(in) {
		if paths[strings.ToLower(file.Path)] {
			t.Fatalf("file %s is listed twice", file.Path)
		}
		paths[strings.ToLower(file.Path)] = true
		if file.Path == kubeletCredentialsFile {
			if !json.Valid(file.Bytes()) || file.Content != "" {
				t.Fatalf("%s is no secret JSON", file.Path)
			}
			continue
		}
		name := strings.TrimPrefix(file.Path, registriesDirectory+`\`)
		device, _, _ := strings.Cut(strings.ToLower(name), ".")
		if !registryFile.MatchString(file.Path) || slices.Contains([]string{"con", "nul", "aux", "prn", "com1", "lpt1"},
			device) {
			t.Fatalf("%q is no legal path", file.Path)
		}
		if !folders[strings.ToLower(file.Path[:strings.LastIndexByte(file.Path, '\\')])] {
			t.Fatalf("nobody makes the folder of %s", file.Path)
		}
		if !strings.HasSuffix(name, hostsFile) {
			continue
		}
		checkHosts(t, file)
	}
}

func checkHosts(t interface{ Fatalf(string, ...any) }, file File) {
	var table hostsTable
	if err := toml.NewDecoder(strings.NewReader(string(file.Bytes()))).DisallowUnknownFields().Decode(&table); err != nil {
		t.Fatalf("%s: %v\n%s", file.Path, err, file.Bytes())
	}
	for url := range table.Hosts {
		if !regexp.MustCompile(`^https?://[a-z0-9.:\[\]-]+/v2(/[a-z0-9._-]+)*$`).MatchString(url) ||
			strings.Contains(url, "/..") {
			t.Fatalf("%s asks %q", file.Path, url)
		}
	}
	if table.CA != "" && !strings.HasPrefix(table.CA, "ca-") {
		t.Fatalf("%s takes authority %q", file.Path, table.CA)
	}
}

// For arbitrary cluster settings, the paths are legal on Windows and the files are valid TOML without injected
// settings.
func TestRegistries_NoInjectionFromClusterSettings(t *testing.T) {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"quay.io", "con", "NUL.example.com", "a.", "a b", `..\..\x`, "../x", "a:5000", "[::1]:80",
			"*.example.com", "a\"]\nserver=\"x",
			"mcr.microsoft.com", "_default", "registry.example.com", "x/../y", "org/repo", "org//repo", "a\x00b", "é",
			"dXNlcjpwYXNz", testCertificate}),
		rapid.String(), rapid.StringMatching(`[a-z0-9.:_-]{0,20}`),
		rapid.StringMatching(`[a-z]{1,8}(\.[a-z]{1,8}){0,3}(:[0-9]{1,6})?`),
	)
	endpoint := rapid.Custom(func(r *rapid.T) Endpoint {
		return Endpoint{Insecure: rapid.Bool().Draw(r, "insecure"), CA: text.Draw(r, "ca")}
	})
	mirror := rapid.Custom(func(r *rapid.T) Mirror {
		return Mirror{Host: text.Draw(r, "host"), Path: text.Draw(r, "path"), Tags: rapid.Bool().Draw(r, "tags"),
			Authorization: Secret(text.Draw(r, "authorization")), Endpoint: endpoint.Draw(r, "endpoint")}
	})
	registry := rapid.Custom(func(r *rapid.T) Registry {
		return Registry{
			Host: text.Draw(r, "host"), Mirrors: rapid.SliceOfN(mirror, 0, 4).Draw(r, "mirrors"),
			NeverContact: rapid.Bool().Draw(r, "never"),
			Blocked:      rapid.Bool().Draw(r, "blocked"), Allowed: rapid.Bool().Draw(r, "allowed"),
			Endpoint: endpoint.Draw(r, "endpoint"),
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		in := testInputs()
		in.PauseImage = text.Draw(r, "pause image")
		in.Cluster.Registries = Registries{
			Hosts: rapid.SliceOfN(registry, 0, 5).Draw(r, "registries"), OnlyAllowed: rapid.Bool().Draw(r, "only allowed"),
			Credentials: []Credential{{Registry: text.Draw(r, "registry"), Auth: Secret(text.Draw(r, "auth"))}},
		}
		checkRegistryFiles(r, in)
		var config map[string]any
		if err := toml.Unmarshal([]byte(containerdConfiguration(in)), &config); err != nil {
			r.Fatalf("the pause image %q breaks the configuration: %v", in.PauseImage, err)
		}
	})
}

// A converted mirror resolves to the location that the cluster configured for the image.
func FuzzExpressMirror(f *testing.F) {
	f.Add("registry.example.com/org/repo", "mirror.local:5000/x/org/repo")
	f.Add("*.example.com", "con/../..")
	f.Fuzz(func(t *testing.T, source, mirror string) {
		sourceHost, mirrorHost, path, ok := ExpressMirror(source, mirror)
		if !ok {
			return
		}
		want, _ := strings.CutPrefix(mirror, mirrorHost)
		rest, _ := strings.CutPrefix(source, sourceHost)
		got := rest
		if path != "" {
			got = "/" + path + rest
		}
		if got != want {
			t.Fatalf("images of %s are asked at %s%s, not at %s", source, mirrorHost, got, mirror)
		}
		checkRegistryFiles(t, withRegistries(Registry{Host: sourceHost, Mirrors: []Mirror{{Host: mirrorHost, Path: path}}}))
	})
}
