// Package metadata queries the metadata services of clouds at a link-local address that only the machine itself can
// reach.
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

// Address is the URL of the metadata service in every cloud.
const Address = "http://169.254.169.254"

// Platforms with their own machine names, as named in the cluster's Infrastructure object.
const (
	aws = "AWS"
	gcp = "GCP"
)

const (
	// connectTimeout and responseTimeout are short because the service runs on the machine's own hypervisor.
	connectTimeout  = 2 * time.Second
	responseTimeout = 5 * time.Second
	// maxResponseSize is the maximum response size in bytes. Names have at most 253 bytes, and tokens of AWS have 56.
	maxResponseSize = 1 << 10
)

// Service implements host.Metadata over HTTP.
type Service struct {
	address string // without a slash at its end
	client  *http.Client
}

// New returns the service at an address such as Address. It uses no proxy, because a response through a proxy would
// describe the proxy's machine.
func New(address string) *Service {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &Service{address: strings.TrimSuffix(address, "/"), client: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 16 << 10, Proxy: nil},
		Timeout: responseTimeout,
		// Metadata services do not redirect. A response from another address does not come from the platform.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// HostName implements host.Metadata. It returns ErrNotExist for a platform without a known metadata service.
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

// awsHostName queries the Instance Metadata Service, only version 2: first a token, which the service returns only
// to the machine itself, then local-hostname. local-hostname is the private DNS name. If the network's DHCP options
// contain several domains, further names follow.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
func (s *Service) awsHostName(ctx context.Context) (string, error) {
	const header = "X-aws-ec2-metadata-token"
	token, _, err := s.sendRequest(ctx, http.MethodPut, "/latest/api/token", header+"-ttl-seconds", "60")
	if err != nil {
		return "", err
	}
	switch {
	case token == "":
		return "", errors.New("the response contains no token")
	case strings.Trim(token, tokenBytes) != "":
		return "", errors.New("the returned token is not valid")
	}
	answer, _, err := s.sendRequest(ctx, http.MethodGet, "/latest/meta-data/local-hostname", header, token)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(answer, " ")
	return strings.ToLower(first), nil
}

// tokenBytes contains the bytes that a token may contain: base64, in either alphabet.
const tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="

// gcpHostName queries the name of the instance. The cloud provider uses this name to find the machine of a node. The
// key instance/hostname would be the internal DNS name, or a custom host name that a user gave the instance.
// https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys
func (s *Service) gcpHostName(ctx context.Context) (string, error) {
	const header, value = "Metadata-Flavor", "Google"
	answer, headers, err := s.sendRequest(ctx, http.MethodGet, "/computeMetadata/v1/instance/name", header, value)
	if err != nil {
		return "", err
	}
	if headers.Get(header) != value {
		return "", fmt.Errorf("the response lacks the header %s: %s of GCP's metadata service", header, value)
	}
	return answer, nil
}

func (s *Service) sendRequest(ctx context.Context, method, path, header, value string) (string, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.address+path, nil)
	if err != nil {
		return "", nil, err
	}
	request.Header.Set(header, value)
	response, err := s.client.Do(request)
	if err != nil {
		return "", nil, fmt.Errorf("%w; check that the machine has a route to the metadata service and that the service is enabled for the machine", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", nil, fmt.Errorf("%s %s: the metadata service returned %d %s", method, path, response.StatusCode,
			http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseSize+1))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("%s %s: read the response: %w", method, path, err)
	case len(body) > maxResponseSize:
		return "", nil, fmt.Errorf("%s %s: the response is longer than %d bytes", method, path, maxResponseSize)
	}
	return strings.TrimSpace(string(body)), response.Header, nil
}

// domainName matches valid names of a node: RFC 1123, lower case.
var domainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)

const maxNameLength = 253

func checkName(name string) error {
	if name == "" {
		return errors.New("the response contains no name")
	}
	if len(name) > maxNameLength || !domainName.MatchString(name) {
		return fmt.Errorf("the returned name %.80q is not a valid DNS name", name)
	}
	return nil
}
