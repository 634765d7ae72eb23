package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// registrySettings are the image pull settings from all sources.
type registrySettings struct {
	// pullSecret is the source of the credentials.
	pullSecret  subject
	credentials []nodespec.Credential
	authorities registryCAs
	rules       []mirrorRule
	// The lists contain the valid entries.
	insecure, blocked, allowed []scope
	onlyAllowed                bool
	// image is the source of the lists.
	image subject
}

// readRegistries reads the image pull settings of nodes. L-02, L-03
func (n *notices) readRegistries(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) (err error) {
	var settings registrySettings
	if err = n.readPullSecret(ctx, reader, &settings); err != nil {
		return err
	}
	if settings.authorities, err = n.readRegistryCAs(ctx, reader); err != nil {
		return err
	}
	if settings.rules, err = n.readMirrorRules(ctx, reader); err != nil {
		return err
	}
	if err = n.readImageSettings(ctx, reader, &settings); err != nil {
		return err
	}
	facts.Registries = n.combineRegistries(settings)
	n.reportCloudRegistries(facts.Platform, settings)
	return nil
}

// readImageSettings reads the lists of insecure, blocked and allowed registries.
func (n *notices) readImageSettings(ctx context.Context, reader client.Reader, settings *registrySettings) error {
	image := &configv1.Image{}
	about, found, err := readOptional(ctx, reader, "cluster", image, "Image cluster")
	if err != nil || !found {
		return err
	}
	settings.image = about
	sources := image.Spec.RegistrySources
	settings.insecure = n.parseScopes(about, insecureField, sources.InsecureRegistries)
	settings.blocked = n.parseScopes(about, blockedField, sources.BlockedRegistries)
	settings.allowed = n.parseScopes(about, allowedField, sources.AllowedRegistries)
	settings.onlyAllowed = len(sources.AllowedRegistries) > 0
	if len(sources.ContainerRuntimeSearchRegistries) > 0 {
		n.addNotice(about, "spec.registrySources.containerRuntimeSearchRegistries",
			"Windows nodes do not search registries: there, an image name without a registry refers to docker.io. Name the registry.")
	}
	return nil
}

// Fields of Image cluster.
const (
	insecureField = "spec.registrySources.insecureRegistries"
	blockedField  = "spec.registrySources.blockedRegistries"
	allowedField  = "spec.registrySources.allowedRegistries"
)

// parseScopes parses a list, and reports the entries that Windows nodes follow only in part: containerd supports
// only complete hosts.
func (n *notices) parseScopes(about subject, field string, entries []string) []scope {
	partly := map[string][2]string{ // for a part of a host, and for a wildcard
		insecureField: {"nodes verify their certificates when they pull from this part, unless it is a mirror",
			"nodes verify the certificates of registries that no other setting of the cluster names"},
		blockedField: {"nodes pull its images", "nodes pull images of registries that no other setting of the cluster names"},
		allowedField: {"nodes may pull all images of the host",
			"nodes pull no images of registries that no other setting of the cluster names"},
	}[field]
	var result []scope
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", field, i)
		s, ok := parseScope(entry)
		switch {
		case !ok, !s.wildcard && !nodespec.IsRegistryHost(s.host):
			n.addNotice(about, at, fmt.Sprintf("%q is not a registry that Windows nodes support. They ignore it.", formatExcerpt(entry)))
			continue
		case s.wildcard:
			n.addNotice(about, at, fmt.Sprintf("Windows nodes cannot apply the setting to all registries of %s: %s. Name each registry.", s, partly[1]))
		case !s.isCompleteHost():
			n.addNotice(about, at, fmt.Sprintf("Windows nodes cannot apply the setting to a part of registry %s: %s. Name the whole registry.", s.host, partly[0]))
		}
		result = append(result, s)
	}
	return result
}

// combineRegistries creates one Registry for each host with settings.
func (n *notices) combineRegistries(settings registrySettings) nodespec.Registries {
	byHost := map[string][]mirrorRule{}
	for _, rule := range settings.rules {
		byHost[rule.source.host] = append(byHost[rule.source.host], rule)
	}
	result := nodespec.Registries{OnlyAllowed: settings.onlyAllowed, Credentials: settings.credentials}
	for _, host := range settings.namedHosts() {
		whole := scope{host: host}
		registry := nodespec.Registry{
			Host: host, Blocked: isInAnyScope(settings.blocked, whole),
			Allowed: settings.onlyAllowed && slices.ContainsFunc(settings.allowed, func(s scope) bool {
				return s.host == host || s.containsScope(whole)
			}),
			Endpoint: nodespec.Endpoint{
				Insecure: isInAnyScope(settings.insecure, whole), CA: settings.authorities[host],
			},
		}
		if rules := byHost[host]; len(rules) > 0 {
			registry.Mirrors = n.registryMirrors(settings, rules)
			registry.NeverContact = n.isContactForbidden(host, rules)
			registry.Blocked = registry.Blocked || registry.NeverContact && len(registry.Mirrors) == 0
			if len(registry.Mirrors) > 0 && !registry.NeverContact && !registry.Blocked {
				n.reportUnusedCredentials(settings, host)
			}
		}
		if registry.Blocked || registry.Allowed || registry.NeverContact || len(registry.Mirrors) > 0 ||
			registry.Endpoint != (nodespec.Endpoint{}) {
			result.Hosts = append(result.Hosts, registry)
		}
	}
	return result
}

// namedHosts returns the sorted hosts named by any setting. Wildcards are applied to these hosts.
func (s registrySettings) namedHosts() []string {
	hosts := map[string]bool{}
	for host := range s.authorities {
		hosts[host] = true
	}
	for _, credential := range s.credentials {
		if place, ok := parseScope(credential.Registry); ok && nodespec.IsRegistryHost(place.host) {
			hosts[place.host] = true
		}
	}
	for _, rule := range s.rules {
		hosts[rule.source.host] = true
		for _, mirror := range rule.mirrors {
			if nodespec.IsRegistryHost(mirror.host) {
				hosts[mirror.host] = true
			}
		}
	}
	for _, list := range [][]scope{s.insecure, s.blocked, s.allowed} {
		for _, entry := range list {
			if !entry.wildcard {
				hosts[entry.host] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

func isInAnyScope(list []scope, s scope) bool {
	return slices.ContainsFunc(list, func(entry scope) bool { return entry.containsScope(s) })
}

// registryMirrors returns the mirrors of one host. containerd identifies a mirror by host and prefix, so one mirror may
// represent several entries.
func (n *notices) registryMirrors(settings registrySettings, rules []mirrorRule) []nodespec.Mirror {
	var result []nodespec.Mirror
	for _, from := range mirrorsOf(rules) {
		if isInAnyScope(settings.blocked, from.scope) {
			n.addNotice(from.rule.about, from.field, fmt.Sprintf("Windows nodes do not use this mirror: Image cluster, %s, blocks it.",
				blockedField))
			continue
		}
		mirror := nodespec.Mirror{
			Host: from.host, Path: from.prefix, Tags: from.tags, Authorization: authorizationFor(settings.credentials,
				from.host, from.path),
			Endpoint: nodespec.Endpoint{Insecure: isInAnyScope(settings.insecure, from.scope),
				CA: settings.authorities[from.host]},
		}
		i := slices.IndexFunc(result, func(m nodespec.Mirror) bool { return m.Host == mirror.Host && m.Path == mirror.Path })
		if i < 0 {
			result = append(result, mirror)
			continue
		}
		result[i].Tags = result[i].Tags || mirror.Tags
		if result[i].Authorization != mirror.Authorization || result[i].Insecure != mirror.Insecure {
			n.addNotice(from.rule.about, from.field,
				fmt.Sprintf("Windows nodes pull all images of this mirror below %s with the same settings: the credentials and the "+
					"security settings of another entry for it.", scope{host: mirror.Host, path: mirror.Path}))
		}
	}
	return result
}

// isContactForbidden reports whether a host itself must not be contacted: true if this applies to all parts of the
// host with an entry. If several entries name the same part, a single entry is sufficient. Source:
// openshift/machine-config-operator, container-runtime-config: addMirrorSets.
func (n *notices) isContactForbidden(host string, rules []mirrorRule) bool {
	never := map[scope]bool{}
	for _, rule := range rules {
		never[rule.source] = never[rule.source] || rule.never
	}
	all, whole := true, never[scope{host: host}]
	for _, one := range never {
		all = all && one
	}
	for _, rule := range rules {
		field := rule.field + ".mirrorSourcePolicy"
		switch {
		case !rule.never:
		case !all:
			n.addNotice(rule.about, field,
				fmt.Sprintf("Windows nodes fall back to %s when its mirrors do not have an image: the source can be blocked only for the whole "+
					"registry, and another entry for %s allows it.", rule.source, host))
		case !whole:
			n.addNotice(rule.about, field,
				fmt.Sprintf("Windows nodes never pull any image from %s: this cannot be limited to a part of a registry. "+
					"Nodes pull images outside of %s from mirrors or not at all.", host, rule.source))
			return true
		}
	}
	return all
}
