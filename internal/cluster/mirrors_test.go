package cluster

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func withoutSource(entry configv1.ImageDigestMirrors) configv1.ImageDigestMirrors {
	entry.MirrorSourcePolicy = configv1.NeverContactSource
	return entry
}

// L-03
func TestMirrors_NodesUseClusterMirrors(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
		notices []string
	}{
		"for digests, in the order given": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io", "z.example.com", "a.example.com:5000/quay"))},
			[]string{"quay.io <- z.example.com/ <- a.example.com:5000/quay"}, nil,
		},
		"for tags too": {
			[]client.Object{tagMirrors("a", tagEntry("quay.io", "m.example.com"))}, []string{"quay.io <- m.example.com/ tags"}, nil,
		},
		"for tags where both kinds of sets name one": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io", "m.example.com", "n.example.com")), tagMirrors("a", tagEntry("quay.io", "n.example.com"))},
			[]string{"quay.io <- m.example.com/ <- n.example.com/ tags"}, nil,
		},
		"by what stands before the path of the source": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io/org/repo", "m.example.com/x/org/repo", "m.example.com/org/repo"))},
			[]string{"quay.io <- m.example.com/x <- m.example.com/"}, nil,
		},
		"but no mirror that calls the images otherwise": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io/org/repo", "m.example.com/repo", "n.example.com/org/repo"), digestEntry("gcr.io/a", "m.example.com/xa"))},
			[]string{"quay.io <- n.example.com/"},
			[]string{"ImageDigestMirrorSet a|spec.imageDigestMirrors[0].mirrors[0]|quay.io/org/repo", "spec.imageDigestMirrors[1].mirrors[0]"},
		},
		"in one order for all sets, by the sets' names where it is open": {
			[]client.Object{digestMirrors("b", digestEntry("quay.io", "b.example.com", "c.example.com")), digestMirrors("c", digestEntry("quay.io", "a.example.com", "b.example.com")),
				digestMirrors("a", digestEntry("quay.io", "x.example.com"))},
			[]string{"quay.io <- x.example.com/ <- a.example.com/ <- b.example.com/ <- c.example.com/"}, nil,
		},
		"of the smallest part of a registry first": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io", "all.example.com"), digestEntry("quay.io/b", "b.example.com/b"), digestEntry("quay.io/a/c", "c.example.com/a/c"),
				digestEntry("quay.io/a", "a.example.com/a"))},
			[]string{"quay.io <- c.example.com/ <- a.example.com/ <- b.example.com/ <- all.example.com/"}, nil,
		},
		"once where parts of a registry have the same": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io/a", "m.example.com/q/a"), digestEntry("quay.io/b", "m.example.com/q/b")), tagMirrors("a", tagEntry("quay.io/b", "m.example.com/q/b"))},
			[]string{"quay.io <- m.example.com/q tags"}, []string{"ImageTagMirrorSet a|spec.imageTagMirrors[0].mirrors[0]|all tags of quay.io through this mirror|push other images to m.example.com/q."},
		},
		"and the source last, or where it is named": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io", "a.example.com", "quay.io"), digestEntry("gcr.io", "gcr.io", "b.example.com"))},
			[]string{"gcr.io <- gcr.io/ <- b.example.com/", "quay.io <- a.example.com/"}, nil,
		},
		"with hosts in capitals": {
			[]client.Object{digestMirrors("a", digestEntry("Quay.IO", "M.example.com"))}, []string{"quay.io <- m.example.com/"}, nil,
		},
		"but no entry without another mirror than itself": {
			[]client.Object{digestMirrors("a", withoutSource(digestEntry("quay.io", "quay.io")), withoutSource(digestEntry("gcr.io")))}, nil, nil,
		},
		"but no address with a password, which is not repeated": {
			[]client.Object{digestMirrors("a", digestEntry("quay.io", "user:canary@m.example.com"))}, nil, []string{`mirrors[0]|"…@m.example.com"`},
		},
		"but none for a wildcard, which is reported": {
			[]client.Object{digestMirrors("a", digestEntry("*.example.com", "m.example.com"))}, nil, []string{"spec.imageDigestMirrors[0].source|*.example.com"},
		},
		"but none of what is no registry, which is reported": {
			[]client.Object{tagMirrors("a", tagEntry(`a\..\b`, "m.example.com"), tagEntry("con.example.com", "m.example.com"), tagEntry("quay.io", "https://m.example.com", "*.example.com", "m:0", "m/", "m/../x", "ok.example.com"))},
			[]string{"quay.io <- ok.example.com/ tags"},
			[]string{"ImageTagMirrorSet a|spec.imageTagMirrors[0].source", "spec.imageTagMirrors[1].source", "spec.imageTagMirrors[2].mirrors[0]", "mirrors[1]", "mirrors[2]", "mirrors[3]", "mirrors[4]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := withObjects(t, test.objects...).readValid(t)
			expectRegistries(t, facts.Registries, test.want...)
			expectNotices(t, notices, test.notices...)
		})
	}
}

// L-03
func TestMirrors_ForbiddenSourceNotContacted(t *testing.T) {
	for name, test := range map[string]struct {
		entries []configv1.ImageDigestMirrors
		want    []string
		notices []string
	}{
		"when all entries of a registry say so": {
			[]configv1.ImageDigestMirrors{withoutSource(digestEntry("quay.io", "m.example.com")),
				withoutSource(digestEntry("quay.io/a", "m.example.com/a"))},
			[]string{"quay.io <- m.example.com/ never"}, nil,
		},
		"nor by way of a mirror that is the source": {
			[]configv1.ImageDigestMirrors{withoutSource(digestEntry("quay.io", "quay.io", "m.example.com"))},
			[]string{"quay.io <- m.example.com/ never"}, nil,
		},
		"when all entries are for parts, which is reported because it is for all images then": {
			[]configv1.ImageDigestMirrors{withoutSource(digestEntry("quay.io/a", "m.example.com/a")),
				withoutSource(digestEntry("quay.io/b", "m.example.com/b"))},
			[]string{"quay.io <- m.example.com/ never"},
			[]string{"spec.imageDigestMirrors[0].mirrorSourcePolicy|never pull any image from quay.io"},
		},
		"but when one entry allows it, which is reported": {
			[]configv1.ImageDigestMirrors{withoutSource(digestEntry("quay.io/a", "m.example.com/a")),
				digestEntry("quay.io/b", "m.example.com/b"), withoutSource(digestEntry("gcr.io", "m.example.com"))},
			[]string{"gcr.io <- m.example.com/ never", "quay.io <- m.example.com/"},
			[]string{"spec.imageDigestMirrors[0].mirrorSourcePolicy|quay.io/a"},
		},
		"when one of several entries for the same part says so": {
			[]configv1.ImageDigestMirrors{digestEntry("quay.io", "m.example.com"), withoutSource(digestEntry("quay.io", "n.example.com"))},
			[]string{"quay.io <- m.example.com/ <- n.example.com/ never"}, nil,
		},
		"even when no mirror can be asked": {
			[]configv1.ImageDigestMirrors{withoutSource(digestEntry("quay.io/a", "m.example.com/b")), withoutSource(digestEntry("quay.io", "*.x"))},
			[]string{"quay.io blocked never"},
			[]string{"mirrors[0]", "mirrors[0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := withObjects(t, digestMirrors("a", test.entries...)).readValid(t)
			expectRegistries(t, facts.Registries, test.want...)
			expectNotices(t, notices, test.notices...)
		})
	}
}

func TestMergeOrder_OneOrderForSeveralSets(t *testing.T) {
	for name, test := range map[string]struct{ lists, want string }{
		"that of each where they agree":                     {"b c|a b", "a b c"},
		"the API's own example":                             {"a b c|c d e", "a b c d e"},
		"as they were named where it is open":               {"x y|a b", "x y a b"},
		"what is first named first where they do not agree": {"a b|b a", "a b"},
		"and what is free of that before it":                {"a b|b a|a z|c", "c a b z"},
		"none of none":                                      {"", ""},
		"once of twice":                                     {"a a b a", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			var lists [][]string
			for _, list := range strings.Split(test.lists, "|") {
				lists = append(lists, strings.Fields(list))
			}
			got := mergeOrder(lists)
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
			if again := mergeOrder(lists); !slices.Equal(got, again) {
				t.Errorf("got %v, then %v", got, again)
			}
		})
	}
}
