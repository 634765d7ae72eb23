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

// readTrustedCAs reads the authorities that the administrators have all nodes trust. The machine config operator
// gathers them from ConfigMap openshift-config/user-ca-bundle and the one that Proxy cluster names. L-01
func (n *notices) readTrustedCAs(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	config := &machineconfigv1.ControllerConfig{}
	about, found, err := readOptional(ctx, reader, controllerConfig, config, controllerConfigID)
	if err != nil || !found {
		return err
	}
	const field = "spec.additionalTrustBundle"
	trusted, problem := authorities(config.Spec.AdditionalTrustBundle)
	if problem != "" {
		return about.error(field,
			problem+" It comes from ConfigMap openshift-config/user-ca-bundle and the trustedCA of Proxy cluster. "+
				"Until they are corrected, nodes keep their current certificate authorities.")
	}
	const origin = "It comes from ConfigMap openshift-config/user-ca-bundle or the trustedCA of Proxy cluster."
	for _, number := range trusted.unread {
		n.add(about, field, fmt.Sprintf("its certificate %d cannot be read. Windows nodes do not trust it. "+origin, number))
	}
	for _, number := range trusted.forOthers {
		n.add(about, field, fmt.Sprintf("the trust settings of its certificate %d do not allow TLS servers, or cannot be read. "+
			"Windows nodes do not trust it. "+origin, number))
	}
	for _, number := range trusted.forSome {
		n.add(about, field, fmt.Sprintf("the trust settings of its certificate %d limit it to some purposes. "+
			"Windows nodes trust it for all. "+origin, number))
	}
	facts.TrustedCAs = trusted.certificates
	return nil
}

// bundle is what a bundle of certificates in PEM holds.
type bundle struct {
	// certificates are in PEM, sorted, each once.
	certificates []string
	// unread are the numbers, from 1, of those that are no certificate of which anything is understood.
	unread []int
	// forSome are the numbers of those whose trust settings allow some purposes only, and forOthers of those that are not in
	// certificates because their trust settings allow no TLS servers.
	forSome, forOthers []int
}

// authorities takes a PEM bundle apart. Nothing but certificates is taken from it. problem is not empty for a bundle
// that was damaged: which certificates are missing in it is not known, so it is not to be used in place of the one
// before.
func authorities(content []byte) (result bundle, problem string) {
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
		case trustForOthers:
			result.forOthers = append(result.forOthers, number)
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

// isDER reports whether something is one whole value in DER: what is no certificate to Go may be one to others.
func isDER(content []byte) bool {
	var value asn1.RawValue
	rest, err := asn1.Unmarshal(content, &value)
	return err == nil && len(rest) == 0
}

// registryCAs are the authorities of registries, in PEM, by the registry's host. L-02
type registryCAs map[string]string

// readRegistryCAs reads them where the machine config operator has put them: those of the administrators (Image
// cluster, additionalTrustedCA) and those of the cluster's own registry.
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
				n.add(about, at+".file",
					fmt.Sprintf("%q does not name a registry that can be configured on Windows nodes; they do not use its certificate authority.", excerpt(b.File)))
				continue
			}
			trusted, problem := authorities(b.Data)
			if unused := slices.Concat(trusted.unread, trusted.forOthers); problem == "" && len(unused) > 0 {
				problem = fmt.Sprintf("its certificate %d cannot be read, or its trust settings do not allow TLS servers.", unused[0])
			}
			if problem != "" {
				n.add(about, at+".data", problem+" Windows nodes verify "+host+" without the faulty certificates. "+
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

// registryOfFile returns the host that a file of certificates is named after. No name of a file or of a ConfigMap's key
// has a colon, so the port stands after two dots: registry.example.com..5000.
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

// excerpt is what a message repeats of a text that somebody else wrote: its beginning, without what could be a password
// before a host.
func excerpt(text string) string {
	const longest = 100
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
