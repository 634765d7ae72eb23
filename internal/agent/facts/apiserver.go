package facts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// APIServer is the address of the API server for the nodes of the cluster.
type APIServer struct{ url, host, port string }

// plainHost matches a DNS name or an IPv4 address.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// ParseAPIServer parses a URL of the form https://host:port, with nothing else in it.
func ParseAPIServer(text string) (*APIServer, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a URL of the form https://HOST:PORT")
	}
	server := &APIServer{url: text, host: parsed.Hostname(), port: parsed.Port()}
	number, err := strconv.ParseUint(server.port, 10, 16)
	if err != nil || number == 0 || !plainHost.MatchString(server.host) || text != "https://"+net.JoinHostPort(server.host, server.port) {
		return nil, errors.New("not a URL of the form https://HOST:PORT, with a DNS name or an IPv4 address")
	}
	return server, nil
}

// ConnectAPIServer connects to the API server while other facts are gathered. The channel returns the result
// within timeouts.APIServerTimeout, or nil without a server.
func ConnectAPIServer(ctx context.Context, from host.Outbound, server *APIServer) <-chan *plan.APIServerFacts {
	answer := make(chan *plan.APIServerFacts, 1)
	if server == nil {
		answer <- nil
		return answer
	}
	go func() {
		late := fmt.Errorf("no response within %s", timeouts.APIServerTimeout)
		limited, cancel := context.WithTimeoutCause(ctx, timeouts.APIServerTimeout, late)
		defer cancel()
		facts := &plan.APIServerFacts{URL: server.url}
		if err := resolveAndConnect(limited, from, server, facts); err != nil {
			facts.Error = err.Error()
		}
		answer <- facts
	}()
	return answer
}

// resolveAndConnect resolves the server's name and connects to all addresses in parallel: an unresponsive address of a
// load balancer must not use up the time. One successful connection is enough.
func resolveAndConnect(ctx context.Context, from host.Outbound, server *APIServer, facts *plan.APIServerFacts) error {
	facts.Resolved = []string{server.host}
	if net.ParseIP(server.host) == nil {
		var err error
		facts.Resolved, err = from.LookupHost(ctx, server.host)
		switch {
		case errors.Is(err, host.ErrNotExist), err == nil && len(facts.Resolved) == 0:
			return fmt.Errorf("the name %s does not resolve on the host: the host's DNS has no such name", server.host)
		case err != nil:
			return fmt.Errorf("the name %s does not resolve on the host: %s", server.host, describeFailure(ctx, err))
		}
	}
	results := make(chan error, len(facts.Resolved))
	for _, address := range facts.Resolved {
		go func() { results <- from.Connect(ctx, net.JoinHostPort(address, server.port)) }()
	}
	var failures []string
	for range facts.Resolved {
		err := <-results
		if err == nil {
			return nil
		}
		failures = append(failures, describeFailure(ctx, err))
	}
	slices.Sort(failures)
	return fmt.Errorf("the host cannot connect to %s: %s",
		net.JoinHostPort(server.host, server.port), strings.Join(slices.Compact(failures), "; "))
}

// describeFailure describes the failure of an attempt. After a timeout, the error of the attempt would not help the
// reader.
func describeFailure(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		return cause.Error()
	}
	return err.Error()
}
