package cluster

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"
)

// cloudRegistries are the registries for which Linux nodes use the identity of the instance, by platform. AWS
// is missing because Windows nodes use the identity there too. A * stands for one part of the name. Source:
// openshift/machine-config-operator, templates/common/azure and gcp, files
// etc-kubernetes-credential-providers-*.
var cloudRegistries = map[configv1.PlatformType][]string{
	configv1.AzurePlatformType: {"*.azurecr.io", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.us"},
	configv1.GCPPlatformType:   {"gcr.io", "*.gcr.io", "*.pkg.dev", "container.cloud.google.com"},
}

// reportCloudRegistries reports the registries of the cloud that are named by settings of the cluster but lack
// credentials in the pull secret. Linux nodes pull from these registries with the identity of the instance. A
// registry named only by pods is not reported: the operator does not read images of pods, and a pull without
// credentials is visible there.
func (n *notices) reportCloudRegistries(platform string, settings registrySettings) {
	reported := map[string]bool{}
	// Notices of one object need different fields, or their events become one.
	report := func(about subject, field string, scopes []scope) {
		var hosts []string
		for _, s := range scopes {
			if !reported[s.host] && isOfCloud(configv1.PlatformType(platform), s.host) && !settings.hasCredentials(s) {
				reported[s.host] = true
				hosts = append(hosts, s.host)
			}
		}
		if len(hosts) == 0 {
			return
		}
		n.addNotice(about, field, fmt.Sprintf("Windows nodes do not use the identity of the instance to pull from %s, unlike Linux nodes. "+
			"If the images are not public, add credentials to Secret %s or to imagePullSecrets of pods on Windows nodes.", listNames(hosts, maxNames), PullSecret))
	}
	for _, rule := range settings.rules {
		var mirrors []scope
		for _, mirror := range rule.mirrors {
			mirrors = append(mirrors, mirror.scope)
		}
		report(rule.about, rule.field+".mirrors", mirrors)
	}
	report(settings.image, allowedField, settings.allowed)
}

// isOfCloud reports whether Linux nodes on the platform have a credential provider for the host.
func isOfCloud(platform configv1.PlatformType, host string) bool {
	_, domain, _ := strings.Cut(host, ".")
	return slices.Contains(cloudRegistries[platform], host) || slices.Contains(cloudRegistries[platform], "*."+domain)
}

// hasCredentials reports whether the pull secret has credentials for some images of the scope.
func (s registrySettings) hasCredentials(of scope) bool {
	for _, credential := range s.credentials {
		if entry, ok := parseScope(credential.Registry); ok && (entry.containsScope(of) || of.containsScope(entry)) {
			return true
		}
	}
	return false
}

// Directory and credential provider for the images of a CRIOCredentialProviderConfig, written by the machine
// config operator. Source: openshift/machine-config-operator, container-runtime-config:
// updateCredentialProviderConfig.
const (
	credentialProvidersPath = "/etc/kubernetes/credential-providers/" //nolint:gosec // G101: a path
	crioCredentialProvider  = "crio-credential-provider"              //nolint:gosec // G101: the name of a program
)

// reportCRIOCredentials reports a CRIOCredentialProviderConfig, which is a technology preview. The setting is
// read from the configuration of the workers: the kind does not exist on other clusters, and the operator would
// poll for it.
func (n *notices) reportCRIOCredentials(worker workerIgnition) {
	var images []string
	for path := range worker.files {
		if strings.HasPrefix(path, credentialProvidersPath) {
			images = append(images, crioImages(worker, path)...)
		}
	}
	if len(images) == 0 {
		return
	}
	slices.Sort(images)
	n.addNotice(subject{id: "CRIOCredentialProviderConfig cluster"}, "spec.matchImages", fmt.Sprintf(
		"Windows nodes do not pull images of %s with the credentials of the namespace of a pod. Name the Secret in imagePullSecrets of pods on Windows nodes.",
		listNames(images, maxNames)))
}

// crioImages returns the images for which a file configures the provider of CRI-O. An unreadable file
// configures nothing.
func crioImages(worker workerIgnition, path string) []string {
	var config struct {
		Providers []struct {
			Name        string   `json:"name"`
			MatchImages []string `json:"matchImages"`
		} `json:"providers"`
	}
	content, _, err := worker.fileContent(path)
	if err != nil || yaml.Unmarshal(content, &config) != nil {
		return nil
	}
	var images []string
	for _, provider := range config.Providers {
		if provider.Name == crioCredentialProvider {
			images = append(images, provider.MatchImages...)
		}
	}
	return images
}
