package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/cluster"
)

// settingFiles maps settings in the table to the files that read them. Every reported setting has a file.
var settingFiles = map[string]string{
	"HTTP proxy of the node":                                            "internal/cluster/proxy.go",
	"certificate authorities of the node":                               "internal/cluster/trust.go",
	"global pull secret":                                                "internal/cluster/pullsecret.go",
	"mirrors":                                                           "internal/cluster/mirrors.go",
	"mirrors of the former kind":                                        "internal/cluster/notfollowed.go",
	"signatures of images, for the cluster":                             "internal/cluster/notfollowed.go",
	"signatures of images, for a namespace":                             "internal/cluster/notfollowed.go",
	"insecure, blocked, allowed registries; search registries":          "internal/cluster/registries.go",
	"certificate authorities of registries, the cluster's own included": "internal/cluster/trust.go",
	"credentials of the cloud's registry, AWS":                          "internal/nodespec/credentialprovider.go",
	"credentials of the cloud's registry, Azure (`*.azurecr.io`) and GCP (`*.pkg.dev`, `gcr.io`)": "internal/cluster/registrycredentials.go",
	"credentials of namespaces for CRI-O":                          "internal/cluster/registrycredentials.go",
	"images that are pulled in advance":                            "internal/cluster/poolsettings.go",
	"kubelet: [followed fields](settings.md#kubelet)":              "internal/cluster/kubeletsettings.go",
	"kubelet: other fields with a meaning on Windows":              "internal/cluster/poolsettings.go",
	"kubelet: reserved resources":                                  "internal/cluster/poolsettings.go",
	"kubelet: log level":                                           "internal/cluster/poolsettings.go",
	"kubelet: cloud provider":                                      "internal/cluster/kubelet.go",
	"container runtime: processes of a container, size of its log": "internal/cluster/poolsettings.go",
	"DNS server and domain of pods":                                "internal/cluster/kubelet.go",
	"networks, MTU, VXLAN port":                                    "internal/cluster/network.go",
	"change of the MTU with a migration":                           "internal/cluster/network.go",
	"IPsec between nodes":                                          "internal/cluster/network.go",
	"platform, internal name of the API server, virtual IPs":       "internal/cluster/infrastructure.go",
	"certificate authority of the kubelets' clients":               "internal/cluster/certificates.go",
	"certificate authority of the API server":                      "internal/cluster/certificates.go",
	"version of the cluster, which determines its support":         "internal/cluster/version.go",
	"FIPS mode":                   "internal/cluster/ignition.go",
	"which changes need no drain": "internal/cluster/nodedisruption.go",
}

func TestLinuxSettings_EachHasEffectInTable(t *testing.T) {
	text := readSection(t, "linux-settings.md", "## Every setting")
	rows := tableRows(t, text, "| setting | where it is set | on Windows nodes | how, or why not |")
	if len(rows) < 40 {
		t.Fatalf("there are only %d rows", len(rows))
	}
	var kinds, reporting, found []string
	for _, row := range rows {
		if len(row) != 4 || !slices.Contains([]string{"applied", "reported", "none"}, row[2]) {
			t.Errorf("no effect is known of %q", row)
			continue
		}
		for _, name := range codeTexts(row[1]) {
			kind, _, _ := strings.Cut(name, " ")
			kind, _, _ = strings.Cut(kind, ".")
			kinds = append(kinds, kind)
		}
		if row[3] == "" {
			t.Errorf("%s: the reason or the place is missing", row[0])
		}
		file := settingFiles[row[0]]
		if file == "" {
			if row[2] == "reported" {
				t.Errorf("%s is reported, and settingFiles has no file for it", row[0])
			}
			continue
		}
		found = append(found, row[0])
		content, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
		}
		if row[2] != "reported" {
			continue
		}
		if !strings.HasPrefix(file, "internal/cluster/") {
			t.Errorf("%s is reported by %s, which is not in internal/cluster", row[0], file)
		}
		if reporting = append(reporting, filepath.Base(file)); !strings.Contains(string(content), "n.addNotice(") {
			t.Errorf("%s: %s reports nothing", row[0], file)
		}
	}
	for setting := range settingFiles {
		if !slices.Contains(found, setting) {
			t.Errorf("settingFiles has %q, which the table does not have", setting)
		}
	}
	for _, watched := range slices.Concat(cluster.Objects(), cluster.OptionalObjects()) {
		if kind := reflect.TypeOf(watched.Object).Elem().Name(); !slices.Contains(kinds, kind) {
			t.Errorf("the operator reads objects of kind %s, which the table does not have", kind)
		}
	}
	files, err := filepath.Glob("../internal/cluster/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.Base(file); strings.Contains(string(content), "n.addNotice(") && !slices.Contains(reporting, name) {
			t.Errorf("%s reports settings of which no row is reported", file)
		}
	}
}
