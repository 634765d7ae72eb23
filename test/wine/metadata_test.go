package wine_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// metadataAddress is the address of AWS' metadata service. All hosts reach it through this machine as their
// gateway.
var metadataAddress = netip.MustParseAddr("169.254.169.254")

// serveMetadata responds like version 2 of AWS' Instance Metadata Service, which requires a token. Hosts are
// identified by address.
func serveMetadata() (stop func(), err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(metadataAddress.String(), "80"))
	if err != nil {
		return nil, fmt.Errorf("serve the metadata of virtual machines: %w", err)
	}
	const header = "X-aws-ec2-metadata-token"
	tokenOf := func(r *http.Request) string { return "token-of-" + strings.ReplaceAll(sourceOf(r), ".", "-") }
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header+"-ttl-seconds") == "" {
			http.Error(w, "a token needs a life", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, tokenOf(r))
	})
	mux.HandleFunc("GET /latest/meta-data/local-hostname", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != tokenOf(r) {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, testenv.MachineDNSName("AWS", sourceOf(r)))
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return func() { _ = server.Close() }, nil
}

func sourceOf(r *http.Request) string {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	return address
}
