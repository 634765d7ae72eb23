package cluster

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const controllerConfigID = "ControllerConfig " + controllerConfig

// readTrustedCAs reads the authorities that administrators configure for all nodes. The machine config operator
// collects them from ConfigMap openshift-config/user-ca-bundle and the ConfigMap named by Proxy cluster. L-01
func (n *notices) readTrustedCAs(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	config := &machineconfigv1.ControllerConfig{}
	about, found, err := readOptional(ctx, reader, controllerConfig, config, controllerConfigID)
	if err != nil || !found {
		return err
	}
	const field = "spec.additionalTrustBundle"
	trusted, problem := parseAuthorities(config.Spec.AdditionalTrustBundle)
	if problem != "" {
		return about.error(field,
			problem+" It comes from ConfigMap openshift-config/user-ca-bundle and the trustedCA of Proxy cluster. "+
				"Until they are corrected, nodes keep their current certificate authorities.")
	}
	const origin = "It comes from ConfigMap openshift-config/user-ca-bundle or the trustedCA of Proxy cluster."
	for _, number := range trusted.unread {
		n.addNotice(about, field, fmt.Sprintf("its certificate %d cannot be read. Windows nodes do not trust it. "+origin, number))
	}
	for _, number := range trusted.notForServers {
		n.addNotice(about, field, fmt.Sprintf("the trust settings of its certificate %d do not allow TLS servers, or cannot be read. "+
			"Windows nodes do not trust it. "+origin, number))
	}
	for _, number := range trusted.forSome {
		n.addNotice(about, field, fmt.Sprintf("the trust settings of its certificate %d limit it to some purposes. "+
			"Windows nodes trust it for all. "+origin, number))
	}
	facts.TrustedCAs = trusted.certificates
	return nil
}

// bundle is the content of a certificate bundle in PEM.
type bundle struct {
	// certificates are in PEM, sorted, without duplicates.
	certificates []string
	// unread are the numbers, from 1, of entries that are valid DER but cannot be parsed as certificates.
	unread []int
	// forSome are the numbers of certificates with trust settings for some purposes only. notForServers are the
	// numbers of certificates omitted because the trust settings do not allow TLS servers.
	forSome, notForServers []int
}

// parseAuthorities parses a PEM bundle and returns only certificates. Problem is not empty for a damaged bundle: the
// missing certificates are unknown, so the bundle must not replace the former one.
func parseAuthorities(content []byte) (result bundle, problem string) {
	announced := countAnnounced(content)
	if announced == 0 {
		if len(bytes.TrimSpace(content)) > 0 {
			return bundle{}, "it contains no certificate in PEM."
		}
		return bundle{}, ""
	}
	number := 0
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		der, allowed := block.Bytes, trustForAll
		switch block.Type {
		case certificateType:
		case trustedCertificateType:
			der, allowed = splitTrusted(block.Bytes)
		default:
			continue
		}
		number++
		if _, err := x509.ParseCertificate(der); err != nil {
			if !isDER(der) {
				return bundle{}, fmt.Sprintf("its certificate %d is damaged.", number)
			}
			result.unread = append(result.unread, number)
			continue
		}
		switch allowed {
		case trustForSome:
			result.forSome = append(result.forSome, number)
		case trustNotForServers:
			result.notForServers = append(result.notForServers, number)
			continue
		}
		result.certificates = append(result.certificates,
			string(pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: der})))
	}
	if number != announced {
		return bundle{}, fmt.Sprintf("it contains the beginning of %d certificates, but only %d are complete.", announced,
			number)
	}
	slices.Sort(result.certificates)
	result.certificates = slices.Compact(result.certificates)
	return result, ""
}

// isDER reports whether the content is one complete DER value. A value rejected as a certificate by Go may be
// valid for other programs.
func isDER(content []byte) bool {
	var value asn1.RawValue
	rest, err := asn1.Unmarshal(content, &value)
	return err == nil && len(rest) == 0
}

// registryCAs are the authorities of registries, in PEM, by the registry's host. L-02
type registryCAs map[string]string

// readRegistryCAs reads the authorities collected by the machine config operator: the authorities of the
// administrators (Image cluster, additionalTrustedCA) and of the cluster's own registry.
func (n *notices) readRegistryCAs(ctx context.Context, reader client.Reader) (registryCAs, error) {
	config := &machineconfigv1.ControllerConfig{}
	about, found, err := readOptional(ctx, reader, controllerConfig, config, controllerConfigID)
	if err != nil || !found {
		return nil, err
	}
	byHost := map[string][]string{}
	collect := func(field string, bundles []machineconfigv1.ImageRegistryBundle) {
		for i, b := range bundles {
			at := fmt.Sprintf("spec.%s[%d]", field, i)
			host := registryOfFile(b.File)
			if !nodespec.IsRegistryHost(host) {
				n.addNotice(about, at+".file",
					fmt.Sprintf("%q does not name a registry that can be configured on Windows nodes; they do not use its certificate authority.", formatExcerpt(b.File)))
				continue
			}
			trusted, problem := parseAuthorities(b.Data)
			if unused := slices.Concat(trusted.unread, trusted.notForServers); problem == "" && len(unused) > 0 {
				problem = fmt.Sprintf("its certificate %d cannot be read, or its trust settings do not allow TLS servers.", unused[0])
			}
			if problem != "" {
				n.addNotice(about, at+".data", problem+" Windows nodes verify "+host+" without the faulty certificates. "+
					"Check the ConfigMap that spec.additionalTrustedCA of Image cluster names.")
			}
			byHost[host] = append(byHost[host], trusted.certificates...)
		}
	}
	collect("imageRegistryBundleUserData", config.Spec.ImageRegistryBundleUserData)
	collect("imageRegistryBundleData", config.Spec.ImageRegistryBundleData)
	result := registryCAs{}
	for host, certificates := range byHost {
		slices.Sort(certificates)
		if joined := strings.Join(slices.Compact(certificates), ""); joined != "" {
			result[host] = joined
		}
	}
	return result, nil
}

// registryOfFile returns the host named by a file of certificates. File names and ConfigMap keys contain no
// colon, so the port follows two dots: registry.example.com..5000.
func registryOfFile(name string) string {
	host, port, found := strings.Cut(strings.ToLower(name), "..")
	if !found {
		return host
	}
	if !isPort(port) {
		return ""
	}
	return host + ":" + port
}

// formatExcerpt returns the beginning of a foreign text for a message, without a possible password before a host.
func formatExcerpt(text string) string {
	const longest = 100
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
