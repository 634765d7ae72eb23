package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// mirrorRule is an entry of an ImageDigestMirrorSet or an ImageTagMirrorSet.
type mirrorRule struct {
	about  subject
	field  string // "spec.imageDigestMirrors[2]"
	source scope
	// mirrors are in the order of the entry, without mirrors that nodes cannot use.
	mirrors []ruleMirror
	tags    bool
	// never is true if the source itself must not be contacted.
	never bool
}

// ruleMirror is a mirror of an entry.
type ruleMirror struct {
	scope
	field string // "spec.imageDigestMirrors[2].mirrors[0]"
	// prefix precedes the repository name of the source; see nodespec.Mirror.
	prefix string
}

// readMirrorRules reads the mirrors: first the mirrors for digests, then the mirrors that also serve tags, each
// kind in the order of the objects' names. L-03
func (n *notices) readMirrorRules(ctx context.Context, reader client.Reader) ([]mirrorRule, error) {
	var rules []mirrorRule
	digests, tags := &configv1.ImageDigestMirrorSetList{}, &configv1.ImageTagMirrorSetList{}
	if err := listOptional(ctx, reader, digests, "ImageDigestMirrorSet"); err != nil {
		return nil, err
	}
	if err := listOptional(ctx, reader, tags, "ImageTagMirrorSet"); err != nil {
		return nil, err
	}
	slices.SortFunc(digests.Items, func(a, b configv1.ImageDigestMirrorSet) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(tags.Items, func(a, b configv1.ImageTagMirrorSet) int { return cmp.Compare(a.Name, b.Name) })
	for _, set := range digests.Items {
		about := subject{"ImageDigestMirrorSet " + set.Name, set.ResourceVersion}
		for i, entry := range set.Spec.ImageDigestMirrors {
			rule := mirrorRule{about: about, field: fmt.Sprintf("spec.imageDigestMirrors[%d]", i),
				never: entry.MirrorSourcePolicy == configv1.NeverContactSource}
			rules = n.appendRule(rules, rule, entry.Source, entry.Mirrors)
		}
	}
	for _, set := range tags.Items {
		about := subject{"ImageTagMirrorSet " + set.Name, set.ResourceVersion}
		for i, entry := range set.Spec.ImageTagMirrors {
			rule := mirrorRule{about: about, field: fmt.Sprintf("spec.imageTagMirrors[%d]", i), tags: true,
				never: entry.MirrorSourcePolicy == configv1.NeverContactSource}
			rules = n.appendRule(rules, rule, entry.Source, entry.Mirrors)
		}
	}
	return rules, nil
}

// appendRule adds an entry if nodes can use any part of the entry.
func (n *notices) appendRule(rules []mirrorRule, rule mirrorRule, source string,
	mirrors []configv1.ImageMirror) []mirrorRule {
	isSource := func(mirror configv1.ImageMirror) bool { return string(mirror) == source }
	if len(slices.DeleteFunc(slices.Clone(mirrors), isSource)) == 0 {
		return rules // as in OpenShift's machine config operator: an entry without other mirrors has no effect
	}
	var ok bool
	switch rule.source, ok = parseScope(source); {
	case !ok:
		n.addNotice(rule.about, rule.field+".source",
			fmt.Sprintf("%q is not a registry or a part of one in the form host[:port][/path]. Windows nodes ignore the entry.",
				formatExcerpt(source)))
		return rules
	case rule.source.wildcard:
		n.addNotice(rule.about, rule.field+".source",
			fmt.Sprintf("Windows nodes cannot use mirrors for all registries of %s, only for a registry with a name. "+
				"Create an entry for each registry that the images come from.", source))
		return rules
	case !nodespec.IsRegistryHost(rule.source.host):
		n.addNotice(rule.about, rule.field+".source",
			fmt.Sprintf("Windows nodes cannot use mirrors for %s: it cannot be the name of a folder on Windows.",
				formatExcerpt(source)))
		return rules
	}
	for i, text := range mirrors {
		field := fmt.Sprintf("%s.mirrors[%d]", rule.field, i)
		mirror, ok := parseScope(string(text))
		if !ok || mirror.wildcard {
			n.addNotice(rule.about, field,
				fmt.Sprintf("%q is not a registry or a part of one in the form host[:port][/path]. Windows nodes do not use it.",
					formatExcerpt(string(text))))
			continue
		}
		_, _, prefix, ok := nodespec.ExpressMirror(rule.source.String(), mirror.String())
		if !ok {
			n.addNotice(rule.about, field,
				fmt.Sprintf("Windows nodes do not use this mirror: containerd can use a mirror for %s only if its path ends in /%s.",
					rule.source, rule.source.path))
			continue
		}
		if rule.tags && !rule.source.isCompleteHost() {
			// A digest determines the image. A tag does not: users who may push to the mirror decide.
			n.addNotice(rule.about, field,
				fmt.Sprintf("Windows nodes resolve all tags of %s through this mirror, not only those of %s: containerd supports mirrors for "+
					"whole registries only. Restrict the permission to push other images to %s.", rule.source.host, rule.source,
					scope{host: mirror.host, path: prefix}))
		}
		rule.mirrors = append(rule.mirrors, ruleMirror{scope: mirror, field: field, prefix: prefix})
	}
	return append(rules, rule)
}

// orderedMirror is a mirror of a host with its entry.
type orderedMirror struct {
	ruleMirror
	rule mirrorRule
	tags bool
}

// mirrorsOf returns the mirrors of all entries for a host in the order of use. Mirrors for a smaller part of
// the host precede the rest: they serve fewer images, and Linux nodes would not use any other mirrors for those
// images.
func mirrorsOf(rules []mirrorRule) []orderedMirror {
	bySource := map[scope][]mirrorRule{}
	var sources []scope
	for _, rule := range rules {
		if bySource[rule.source] == nil {
			sources = append(sources, rule.source)
		}
		bySource[rule.source] = append(bySource[rule.source], rule)
	}
	slices.SortFunc(sources, func(a, b scope) int {
		return cmp.Or(cmp.Compare(b.pathDepth(), a.pathDepth()), cmp.Compare(a.String(), b.String()))
	})
	var result []orderedMirror
	for _, source := range sources {
		result = append(result, mergeRules(source, bySource[source])...)
	}
	return result
}

// mergeRules merges the entries for one source. As in OpenShift's machine config operator, the order of each entry
// is preserved unless entries contradict each other: (b, c) and (a, b) are (a, b, c). The source itself is
// omitted at the end of the list because it is always used last.
func mergeRules(source scope, rules []mirrorRule) []orderedMirror {
	found := map[scope]*orderedMirror{}
	var lists [][]scope
	never := false
	for _, rule := range rules {
		never = never || rule.never
		var list []scope
		for _, mirror := range rule.mirrors {
			list = append(list, mirror.scope)
			if found[mirror.scope] == nil {
				found[mirror.scope] = &orderedMirror{ruleMirror: mirror, rule: rule}
			}
			found[mirror.scope].tags = found[mirror.scope].tags || rule.tags
		}
		if !slices.Contains(list, source) {
			list = append(list, source)
		}
		lists = append(lists, list)
	}
	order := mergeOrder(lists)
	if last := len(order) - 1; order[last] == source {
		order = order[:last]
	}
	var result []orderedMirror
	for _, mirror := range order {
		if mirror == source && never || found[mirror] == nil {
			continue
		}
		result = append(result, *found[mirror])
	}
	return result
}

// mergeOrder merges several lists and preserves the order of each list. Contradictions are resolved in favor of
// the entry that was named first.
func mergeOrder[T comparable](lists [][]T) []T {
	var waiting []T
	behind := map[T]map[T]bool{}
	for _, list := range lists {
		for i, entry := range list {
			if behind[entry] == nil {
				behind[entry] = map[T]bool{}
				waiting = append(waiting, entry)
			}
			if i > 0 && list[i-1] != entry {
				behind[entry][list[i-1]] = true
			}
		}
	}
	var result []T
	for len(waiting) > 0 {
		next := max(0, slices.IndexFunc(waiting, func(entry T) bool { return len(behind[entry]) == 0 }))
		done := waiting[next]
		waiting = slices.Delete(waiting, next, next+1)
		for _, entry := range waiting {
			delete(behind[entry], done)
		}
		result = append(result, done)
	}
	return result
}
