package cluster

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readProxy reads the active cluster-wide proxy: the status, to which the cluster network operator copies a
// valid spec together with the cluster's own networks. A fault is an error rather than a notice: without their
// proxy, working nodes would lose access to all external servers. L-01
func readProxy(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	proxy := &configv1.Proxy{}
	about, found, err := readOptional(ctx, reader, "cluster", proxy, "Proxy cluster")
	if err != nil || !found {
		return err
	}
	status := proxy.Status
	if status.HTTPProxy == "" && status.HTTPSProxy == "" {
		return nil // noProxy alone has no effect
	}
	const remedy = " Correct the spec; the cluster network operator copies it to the status. Until then, nodes keep their current proxy."
	for _, u := range []struct{ field, value string }{{"status.httpProxy", status.HTTPProxy},
		{"status.httpsProxy", status.HTTPSProxy}} {
		if u.value != "" && !isProxyURL(u.value) {
			return about.error(u.field,
				"it is not a URL in the form http://<user>:<password>@<host>:<port>, with quotes, spaces and similar characters written as %xx."+remedy)
		}
	}
	exceptions, ok := proxyExceptions(status.NoProxy)
	if !ok {
		return about.error("status.noProxy",
			"it is not a list of host names, domains, addresses and networks, separated by commas."+remedy)
	}
	facts.Proxy = nodespec.Proxy{HTTP: nodespec.Secret(status.HTTPProxy), HTTPS: nodespec.Secret(status.HTTPSProxy),
		NoProxy: exceptions}
	// A value that fits in no NodeSpec is a fault of this object, not of each host.
	if err := facts.Proxy.Validate(); err != nil {
		return about.error("status", err.Error()+"."+remedy)
	}
	return nil
}

// isProxyURL reports whether a text is usable as the proxy of programs on a node. The text is written to
// environments of services, where a line end or a NUL would start another variable.
func isProxyURL(text string) bool {
	if !isPrintable(text) || strings.ContainsAny(text, " \"'<>\\^`{|}") {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return false
	}
	if port := u.Port(); port != "" && !isPort(port) || port == "" && strings.HasSuffix(u.Host, ":") {
		return false
	}
	return (u.Path == "" || u.Path == "/") && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" &&
		!strings.Contains(text, "#")
}

// proxyExceptions returns the entries of a noProxy without surrounding spaces and empty entries.
func proxyExceptions(list string) (string, bool) {
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if strings.Trim(entry, exceptionCharacters) != "" {
			return "", false
		}
		if entry != "" {
			entries = append(entries, entry)
		}
	}
	return strings.Join(entries, ","), true
}

// exceptionCharacters are the characters of host names, domains with a leading dot or asterisk, addresses with
// a port, and networks.
const exceptionCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*:/[]"

// isPrintable reports whether a text contains only printable ASCII characters.
func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// isPort reports whether a text is the number of a TCP port.
func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0 && text[0] != '0' && text[0] != '+'
}
