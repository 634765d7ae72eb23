package cluster

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// L-01
func TestProxy_NodesUseClusterProxy(t *testing.T) {
	for name, test := range map[string]struct {
		status configv1.ProxyStatus
		want   nodespec.Proxy
	}{
		"as the network operator has put it into the status": {
			configv1.ProxyStatus{HTTPProxy: "http://proxy.example.com:3128", HTTPSProxy: "https://proxy.example.com:3129",
				NoProxy: ".cluster.local,.svc,10.0.0.0/16,*.example.com"},
			nodespec.Proxy{HTTP: "http://proxy.example.com:3128", HTTPS: "https://proxy.example.com:3129",
				NoProxy: ".cluster.local,.svc,10.0.0.0/16,*.example.com"},
		},
		"with a user and password": {
			configv1.ProxyStatus{HTTPProxy: "http://user:p%40ss%3Aword!@10.0.0.1:3128/"},
			nodespec.Proxy{HTTP: "http://user:p%40ss%3Aword!@10.0.0.1:3128/"},
		},
		"at an IPv6 address": {configv1.ProxyStatus{HTTPSProxy: "http://[fd00::1]:3128"},
			nodespec.Proxy{HTTPS: "http://[fd00::1]:3128"}},
		"with spaces and empty entries among exceptions": {configv1.ProxyStatus{HTTPProxy: "http://p",
			NoProxy: " a, ,b,[fd00::1]:80 ,"}, nodespec.Proxy{HTTP: "http://p", NoProxy: "a,b,[fd00::1]:80"}},
		"not at all when there are exceptions only": {configv1.ProxyStatus{NoProxy: "a,b"}, nodespec.Proxy{}},
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := withObjects(t, proxyWith(test.status)).readValid(t)
			if facts.Proxy != test.want {
				t.Errorf("got %#v: %q %q %q", facts.Proxy, string(facts.Proxy.HTTP), string(facts.Proxy.HTTPS), facts.Proxy.NoProxy)
			}
			if err := facts.Proxy.Validate(); err != nil {
				t.Error(err)
			}
			expectNotices(t, notices)
		})
	}
}

// L-01
func TestProxy_InvalidProxyIsError(t *testing.T) {
	for name, test := range map[string]struct {
		status configv1.ProxyStatus
		want   string
	}{
		"no URL":                     {configv1.ProxyStatus{HTTPProxy: "canary"}, "status.httpProxy"},
		"a URL that cannot be read":  {configv1.ProxyStatus{HTTPProxy: "http://user:canary@%zz"}, "status.httpProxy"},
		"another scheme":             {configv1.ProxyStatus{HTTPSProxy: "socks5://canary:1080"}, "status.httpsProxy"},
		"no host":                    {configv1.ProxyStatus{HTTPSProxy: "http://user:canary@"}, "status.httpsProxy"},
		"an invalid port":            {configv1.ProxyStatus{HTTPProxy: "http://canary:99999"}, "status.httpProxy"},
		"an empty port":              {configv1.ProxyStatus{HTTPProxy: "http://canary:"}, "status.httpProxy"},
		"a path":                     {configv1.ProxyStatus{HTTPProxy: "http://proxy:80/canary"}, "status.httpProxy"},
		"a query":                    {configv1.ProxyStatus{HTTPProxy: "http://proxy:80?canary"}, "status.httpProxy"},
		"a fragment":                 {configv1.ProxyStatus{HTTPProxy: "http://proxy:80#canary"}, "status.httpProxy"},
		"another variable behind it": {configv1.ProxyStatus{HTTPProxy: "http://proxy:80\nPATH=canary"}, "status.httpProxy"},
		"a NUL":                      {configv1.ProxyStatus{HTTPProxy: "http://proxy:80\x00canary"}, "status.httpProxy"},
		"a quote": {configv1.ProxyStatus{HTTPProxy: `http://user:"canary"@proxy:80`},
			"status.httpProxy"},
		"an exception with a line end": {configv1.ProxyStatus{HTTPProxy: "http://proxy", NoProxy: "a\nPATH=canary"},
			"status.noProxy"},
		"an exception with a space": {configv1.ProxyStatus{HTTPProxy: "http://proxy", NoProxy: "a canary"},
			"status.noProxy"},
		"an exception with a quote": {configv1.ProxyStatus{HTTPProxy: "http://proxy", NoProxy: `a"canary"`},
			"status.noProxy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withObjects(t, proxyWith(test.status)).read(t)
			var fault *Error
			if !errors.As(err, &fault) || fault.Object != "Proxy cluster" || fault.Field != test.want ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("error is %v", err)
			}
		})
	}
}
