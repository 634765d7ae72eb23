package nodespec

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// directEnvironment returns the environment of a service that connects to the cluster only. Without this variable,
// the service manager passes the machine's variables, and the service sends API requests to a proxy outside of the
// cluster. Source of the name and the value: golang.org/x/net/http/httpproxy.
func directEnvironment() []string { return []string{"NO_PROXY=*"} }

// proxyEnvironment returns the environment of a service that also connects to the outside of the cluster. As on
// Linux workers, only the cluster's proxies apply, and never a proxy of the machine. If the cluster has only one of
// the two proxies, the other variable is set empty to override the machine's variable.
func proxyEnvironment(in Inputs) []string {
	p := in.Cluster.Proxy
	if p.HTTP == "" && p.HTTPS == "" {
		return directEnvironment()
	}
	return []string{"HTTP_PROXY=" + string(p.HTTP), "HTTPS_PROXY=" + string(p.HTTPS), "NO_PROXY=" + noProxy(in)}
}

// noProxy returns the cluster's list and the names and networks that a node must always reach directly, sorted and
// without duplicates. The cloud's metadata address is included because a proxy would query the metadata of the
// proxy's own machine.
func noProxy(in Inputs) string {
	entries := slices.Concat(
		strings.Split(in.Cluster.Proxy.NoProxy, ","),
		[]string{"localhost", "127.0.0.1", "169.254.169.254", ".svc", "." + in.Cluster.Kubelet.ClusterDomain},
		in.Cluster.ServiceCIDRs, in.Cluster.Network.HybridClusterNetworks,
	)
	if server, err := url.Parse(in.Cluster.APIServerInternalURL); err == nil {
		entries = append(entries, server.Hostname())
	}
	for i := range entries {
		entries[i] = strings.TrimSpace(entries[i])
	}
	slices.Sort(entries)
	entries = slices.DeleteFunc(slices.Compact(entries), func(entry string) bool { return entry == "" })
	return strings.Join(entries, ",")
}

// Validate returns an error for proxy fields that programs cannot use or would misread. The error never contains
// the URLs, which may contain a password.
func (p Proxy) Validate() error {
	var faults []error
	for _, field := range []struct {
		name  string
		value Secret
	}{{"httpProxy", p.HTTP}, {"httpsProxy", p.HTTPS}} {
		if err := validateProxyURL(string(field.value)); err != nil {
			faults = append(faults, fmt.Errorf("the cluster's proxy: %s %w", field.name, err))
		}
	}
	for entry := range strings.SplitSeq(p.NoProxy, ",") {
		if entry = strings.TrimSpace(entry); !isWord(entry) {
			faults = append(faults, fmt.Errorf("the cluster's proxy: the entry %q of noProxy is not a name, address or network",
				entry))
		}
	}
	return errors.Join(faults...)
}

func validateProxyURL(text string) error {
	if text == "" {
		return nil
	}
	if !isWord(text) {
		return errors.New("contains a space, a quote or a control character, which must be escaped in a URL")
	}
	// The error of Parse contains the text.
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return errors.New("is not a URL of the form http://host:port or https://host:port")
	}
	return nil
}

// isWord reports whether a text is safe in an environment and in a command line: no spaces, quotes or unprintable
// characters.
func isWord(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`", r)
	})
}
