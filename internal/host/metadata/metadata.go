// Package metadata asks the metadata services of clouds, at a link-local address that only the machine itself reaches.
package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Address is where every cloud has its metadata service.
const Address = "http://169.254.169.254"

// Platforms with a name of their own for a machine, as the cluster's Infrastructure object calls them.
const (
	aws = "AWS"
	gcp = "GCP"
)

const (
	// connectTimeout and answerTimeout are short: the service is on the machine's own hypervisor.
	connectTimeout = 2 * time.Second
	answerTimeout  = 5 * time.Second
	// limit is in bytes; names have at most 253, AWS' tokens 56.
	limit = 1 << 10
)

// Service is host.Metadata over HTTP.
type Service struct {
	address string // without a slash at its end
	client  *http.Client
}

// New returns the service at an address such as Address. It uses no proxy, whose answer would be about another machine.
func New(address string) *Service {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &Service{address: strings.TrimSuffix(address, "/"), client: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 16 << 10, Proxy: nil},
		Timeout: answerTimeout,
		// No metadata service redirects; an answer from elsewhere is not the platform's.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// HostName implements host.Metadata. A platform that names machines in another way gives ErrNotExist.
func (s *Service) HostName(ctx context.Context, platform string) (name string, err error) {
	switch platform {
	case aws:
		name, err = s.awsHostName(ctx)
	case gcp:
		name, err = s.gcpHostName(ctx)
	default:
		return "", fmt.Errorf("platform %.40q has no known metadata service: %w", platform, host.ErrNotExist)
	}
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return "", fmt.Errorf("query the metadata service of %s for this machine's name: %w", platform, err)
	}
	return name, nil
}

// awsHostName asks the Instance Metadata Service, version 2 only: a token first, which the service gives to none but
// the machine itself. local-hostname is the private DNS name; with several domains in the network's DHCP options it is
// followed by others. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
func (s *Service) awsHostName(ctx context.Context) (string, error) {
	const header = "X-aws-ec2-metadata-token"
	token, _, err := s.ask(ctx, http.MethodPut, "/latest/api/token", header+"-ttl-seconds", "60")
	if err != nil {
		return "", err
	}
	switch {
	case token == "":
		return "", errors.New("it returned no token")
	case strings.Trim(token, tokenBytes) != "":
		return "", errors.New("its token is not valid")
	}
	answer, _, err := s.ask(ctx, http.MethodGet, "/latest/meta-data/local-hostname", header, token)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(answer, " ")
	return strings.ToLower(first), nil
}

// tokenBytes are what a token is made of: base64, in either alphabet.
const tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="

// gcpHostName asks for the instance's name, by which the cloud provider finds the machine of a node. instance/hostname
// would be the internal DNS name, or whatever custom host name a user gave the instance.
// https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys
func (s *Service) gcpHostName(ctx context.Context) (string, error) {
	const header, value = "Metadata-Flavor", "Google"
	answer, headers, err := s.ask(ctx, http.MethodGet, "/computeMetadata/v1/instance/name", header, value)
	if err != nil {
		return "", err
	}
	if headers.Get(header) != value {
		return "", fmt.Errorf("the answer lacks the header %s: %s, so it is not from GCP's metadata service", header, value)
	}
	return answer, nil
}

// ask sends a request with one header and returns the answer without white space around it.
func (s *Service) ask(ctx context.Context, method, path, header, value string) (string, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.address+path, nil)
	if err != nil {
		return "", nil, err
	}
	request.Header.Set(header, value)
	response, err := s.client.Do(request)
	if err != nil {
		return "", nil, fmt.Errorf("%w (is the route to the metadata service there, and is the service enabled for this machine?)", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", nil, fmt.Errorf("%s %s: the metadata service answered %d %s", method, path, response.StatusCode,
			http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	case len(body) > limit:
		return "", nil, fmt.Errorf("%s %s: the answer is longer than %d bytes", method, path, limit)
	}
	return strings.TrimSpace(string(body)), response.Header, nil
}

// domainName is what a node can be called: RFC 1123, lower case.
var domainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)

const maxNameLength = 253

func checkName(name string) error {
	if name == "" {
		return errors.New("it returned no name")
	}
	if len(name) > maxNameLength || !domainName.MatchString(name) {
		return fmt.Errorf("it returned %.80q, which is not a valid DNS name", name)
	}
	return nil
}
