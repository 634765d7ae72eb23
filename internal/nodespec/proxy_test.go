package nodespec

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

func environmentOf(t testing.TB, spec NodeSpec, service string) []string {
	t.Helper()
	i := slices.IndexFunc(spec.Services, func(s Service) bool { return s.Name == service })
	if i < 0 {
		t.Fatalf("there is no service %s", service)
	}
	return spec.Services[i].Environment
}

func TestProxy(t *testing.T) {
	in := azureInputs()
	spec := mustMake(t, in)
	t.Run("reaches those that speak with the world, and no others", func(t *testing.T) {
		for _, service := range spec.Services {
			want := slices.Contains([]string{"containerd", ServiceKubelet, ServiceCloudNodeManager}, service.Name)
			if has := len(service.Environment) == 3; has != want {
				t.Errorf("%s has %d variables", service.Name, len(service.Environment))
			}
		}
		if len(spec.Environment) != 0 {
			t.Error("the machine's environment is changed, which services see only after a reboot")
		}
	})
	t.Run("what belongs to the cluster is reached without", func(t *testing.T) {
		list := noProxy(in)
		proxy := (&httpproxy.Config{HTTPProxy: "http://p:1", HTTPSProxy: "http://p:1", NoProxy: list}).ProxyFunc()
		for target, direct := range map[string]bool{
			"https://api-int.lab.example.com:6443": true, "https://172.30.0.1:443": true, "https://[fd02::1]": true, "http://169.254.169.254": true,
			"https://a.b.svc": true, "https://a.b.svc.cluster.local": true, "http://10.132.5.5": true, "http://localhost": true,
			"https://mcr.microsoft.com": false, "https://svc.example.com": false,
		} {
			address, _ := url.Parse(target)
			if used, err := proxy(address); err != nil || (used == nil) != direct {
				t.Errorf("%s goes by %v, error %v", target, used, err)
			}
		}
		entries := strings.Split(list, ",")
		if !slices.IsSorted(entries) || len(slices.Compact(entries)) != strings.Count(list, ",")+1 {
			t.Errorf("%s is not sorted or has an entry twice", list)
		}
	})
	t.Run("equal lists in another order make equal nodes", func(t *testing.T) {
		other := azureInputs()
		entries := strings.Split(in.Cluster.Proxy.NoProxy, ",")
		slices.Reverse(entries)
		other.Cluster.Proxy.NoProxy = " " + strings.Join(entries, " , ") + ",,"
		if mustMake(t, other).Digest() != spec.Digest() {
			t.Error("they do not")
		}
	})
	t.Run("a cluster without one has none, whatever needs none", func(t *testing.T) {
		none := testInputs()
		none.Cluster.Proxy.NoProxy = "example.com"
		for _, service := range mustMake(t, none).Services {
			for _, variable := range service.Environment {
				if variable != "NO_PROXY=*" {
					t.Errorf("%s has the variable %s", service.Name, variable)
				}
			}
		}
	})
	for name, test := range map[string]struct {
		proxy Proxy
		field string
	}{
		"a line break in a URL":     {Proxy{HTTP: "http://user:hidden@p\nX=1"}, "httpProxy"},
		"a NUL in a URL":            {Proxy{HTTPS: "http://user:hidden@p\x00X=1"}, "httpsProxy"},
		"a quote in a URL":          {Proxy{HTTP: `http://user:hidden"@p`}, "httpProxy"},
		"a URL without a host":      {Proxy{HTTP: "http://"}, "httpProxy"},
		"a URL with a broken port":  {Proxy{HTTPS: "http://user:hidden@p:port"}, "httpsProxy"},
		"a URL of another kind":     {Proxy{HTTPS: "socks5://user:hidden@p"}, "httpsProxy"},
		"a line break in the list":  {Proxy{HTTP: "http://p", NoProxy: "a\nb"}, "noProxy"},
		"a NUL in the list":         {Proxy{HTTP: "http://p", NoProxy: "a,b\x00"}, "noProxy"},
		"a quote in the list":       {Proxy{HTTP: "http://p", NoProxy: `a"`}, "noProxy"},
		"what is no text in a list": {Proxy{HTTP: "http://p", NoProxy: "a,\xff"}, "noProxy"},
	} {
		t.Run(name+" is refused by the field's name, without a password", func(t *testing.T) {
			in := testInputs()
			in.Cluster.Proxy = test.proxy
			if _, err := Make(in); err == nil || !strings.Contains(err.Error(), test.field) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// A service gets the machine's variables, except for the variables that the service itself sets.
func TestProxy_APIServerReachedWithoutMachineProxy(t *testing.T) {
	without := azureInputs()
	without.Cluster.Proxy = Proxy{}
	onlyHTTP := azureInputs()
	onlyHTTP.Cluster.Proxy.HTTPS = ""
	onlyHTTPS := azureInputs()
	onlyHTTPS.Cluster.Proxy.HTTP = ""
	for name, in := range map[string]Inputs{
		"in a cluster without a proxy":                  without,
		"in a cluster with one":                         azureInputs(),
		"in a cluster with one for plain requests only": onlyHTTP,
		"in a cluster with one for HTTPS only":          onlyHTTPS,
	} {
		t.Run(name, func(t *testing.T) {
			server, err := url.Parse(in.Cluster.APIServerInternalURL)
			if err != nil {
				t.Fatal(err)
			}
			spec := mustMake(t, in)
			for _, service := range []string{ServiceContainerd, ServiceKubelet, ServiceKubeProxy, ServiceHybridOverlay,
				ServiceCloudNodeManager, ServiceAgent} {
				variables := map[string]string{"HTTP_PROXY": "http://machine:3128", "HTTPS_PROXY": "http://machine:3128",
					"NO_PROXY": "machine.example.com"}
				for _, variable := range environmentOf(t, spec, service) {
					name, value, _ := strings.Cut(variable, "=")
					variables[name] = value
				}
				proxy := (&httpproxy.Config{HTTPProxy: variables["HTTP_PROXY"], HTTPSProxy: variables["HTTPS_PROXY"],
					NoProxy: variables["NO_PROXY"]}).ProxyFunc()
				if used, err := proxy(server); err != nil || used != nil {
					t.Errorf("%s reaches the API server by %v, error %v", service, used, err)
				}
				for _, scheme := range []string{"http", "https"} {
					used, err := proxy(&url.URL{Scheme: scheme, Host: "mcr.microsoft.com"})
					if err != nil || used != nil && used.Hostname() == "machine" {
						t.Errorf("%s reaches %s servers by %v, error %v", service, scheme, used, err)
					}
				}
			}
		})
	}
	t.Run("and containerd pulls images without it", func(t *testing.T) {
		if got := environmentOf(t, mustMake(t, without), ServiceContainerd); !slices.Equal(got, []string{"NO_PROXY=*"}) {
			t.Errorf("its environment is %q", got)
		}
	})
}

func FuzzProxy(f *testing.F) {
	f.Add("http://user:password@proxy.example.com:3128", "https://proxy.example.com", ".svc,10.0.0.0/8")
	f.Add("http://p\r\nX=1", "", "a b,\"c\"")
	f.Fuzz(func(t *testing.T, http, https, list string) {
		in := testInputs()
		in.Cluster.Proxy = Proxy{HTTP: Secret(http), HTTPS: Secret(https), NoProxy: list}
		spec, err := Make(in)
		if err != nil {
			return
		}
		plain := mustMake(t, testInputs())
		for i, service := range spec.Services {
			if service.CommandLine != plain.Services[i].CommandLine {
				t.Errorf("the command line of %s is another", service.Name)
			}
			for _, variable := range service.Environment {
				name, value, _ := strings.Cut(variable, "=")
				if !slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, name) ||
					strings.ContainsAny(value, "\x00\r\n\"") || name == "NO_PROXY" && value == "" {
					t.Errorf("%s has the variable %q", service.Name, variable)
				}
			}
			if len(service.Environment) > 3 {
				t.Errorf("%s has %d variables", service.Name, len(service.Environment))
			}
		}
	})
}
