package cluster

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
)

// L-02, L-03
func TestRegistries_FollowImageConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		sources configv1.RegistrySources
		want    []string
		notices []string
	}{
		"insecure registries": {configv1.RegistrySources{InsecureRegistries: []string{"b.example.com:5000", "A.example.com"}},
			[]string{"a.example.com insecure", "b.example.com:5000 insecure"}, nil},
		"blocked registries": {configv1.RegistrySources{BlockedRegistries: []string{"b.example.com"}},
			[]string{"b.example.com blocked"}, nil},
		"allowed registries": {configv1.RegistrySources{AllowedRegistries: []string{"b.example.com",
			"quay.io"}}, []string{"b.example.com allowed", "quay.io allowed"}, nil},
		"one that is both, as both": {configv1.RegistrySources{AllowedRegistries: []string{"quay.io"},
			BlockedRegistries: []string{"quay.io"}}, []string{"quay.io blocked allowed"}, nil},
		"all allowed where a part of one is": {configv1.RegistrySources{AllowedRegistries: []string{"quay.io/a"}},
			[]string{"quay.io allowed"}, []string{"Image cluster|spec.registrySources.allowedRegistries[0]|part"}},
		"none blocked where a part of one is": {configv1.RegistrySources{BlockedRegistries: []string{"quay.io/a"}}, nil,
			[]string{"spec.registrySources.blockedRegistries[0]|pull its images"}},
		"none insecure where a part of one is": {configv1.RegistrySources{InsecureRegistries: []string{"quay.io/a"}}, nil,
			[]string{"spec.registrySources.insecureRegistries[0]|verify their certificates"}},
		"no wildcard of which nothing is known": {configv1.RegistrySources{BlockedRegistries: []string{"*.example.com"}},
			nil, []string{"blockedRegistries[0]|*.example.com"}},
		"a wildcard for those that are known": {configv1.RegistrySources{BlockedRegistries: []string{"*.example.com"},
			InsecureRegistries: []string{"a.example.com:5000", "example.com"}}, []string{"a.example.com:5000 blocked insecure",
			"example.com insecure"}, []string{"blockedRegistries[0]"}},
		"nothing that is no registry": {configv1.RegistrySources{InsecureRegistries: []string{"", "http://x",
			"aux", "a..b", "x:70000"}}, nil, []string{"insecureRegistries[0]", "insecureRegistries[1]", "insecureRegistries[2]",
			"insecureRegistries[3]", "insecureRegistries[4]"}},
		"no registries that are searched in turn": {configv1.RegistrySources{ContainerRuntimeSearchRegistries: []string{"quay.io"}}, nil, []string{"containerRuntimeSearchRegistries"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := withObjects(t, imageWith(test.sources)).readValid(t)
			expectRegistries(t, facts.Registries, test.want...)
			expectNotices(t, notices, test.notices...)
			if facts.Registries.OnlyAllowed != (len(test.sources.AllowedRegistries) > 0) {
				t.Errorf("only allowed: %v", facts.Registries.OnlyAllowed)
			}
		})
	}
}

// L-02, L-03
func TestMirrors_HaveSettingsOfTheirHosts(t *testing.T) {
	mirrors := digestMirrors("a", digestEntry("quay.io", "m.example.com:5000/a", "n.example.com", "blocked.example.com"))
	f := withObjects(t, mirrors, imageWith(configv1.RegistrySources{
		InsecureRegistries: []string{"*.example.com", "quay.io/x"}, BlockedRegistries: []string{"blocked.example.com",
			"registry.example.com"},
	}), pullSecretWith(`{"auths":{"n.example.com":{"auth":"dTpw"},"m.example.com:5000/b":{"auth":"dTpw"}}}`))
	f.clientCA = registryCA(machineconfigv1.ImageRegistryBundle{File: "m.example.com..5000",
		Data: []byte(newAuthorityPEM(t, "m"))})
	facts, notices := f.readValid(t)
	expectRegistries(t, facts.Registries,
		"blocked.example.com blocked insecure",
		"m.example.com:5000 insecure CA",
		"n.example.com insecure",
		"quay.io <- m.example.com:5000/a insecure CA <- n.example.com/ insecure authorized",
		"registry.example.com blocked insecure",
	)
	expectNotices(t, notices, "Image cluster|insecureRegistries[0]", "Image cluster|insecureRegistries[1]",
		"ImageDigestMirrorSet a|mirrors[2]|blocks it")
}

func TestMirrors_SharedMirrorHasOneSetting(t *testing.T) {
	facts, notices := withObjects(t, digestMirrors("a", digestEntry("quay.io/a", "m.example.com/a"),
		digestEntry("quay.io/b", "m.example.com/b")),
		pullSecretWith(`{"auths":{"m.example.com/a":{"auth":"dTpw"},"m.example.com/b":{"auth":"dTpx"}}}`)).readValid(t)
	if mirrors := facts.Registries.Hosts[0].Mirrors; len(mirrors) != 1 || mirrors[0].Authorization != "dTpw" {
		t.Errorf("got %+v", mirrors)
	}
	expectNotices(t, notices, "ImageDigestMirrorSet a|spec.imageDigestMirrors[1].mirrors[0]|same settings")
}

func TestScopes(t *testing.T) {
	for text, want := range map[string]string{
		"quay.io": "quay.io", "Quay.io:5000/a/b-c.d__e": "quay.io:5000/a/b-c.d__e", "*.Example.com": "*.example.com",
		"localhost:5000": "localhost:5000", "10.0.0.1:5000/a": "10.0.0.1:5000/a",
		"": "", "quay.io/": "", "quay.io//a": "", "quay.io/A": "", "quay.io/a/": "", "quay.io/..": "", "quay.io/a/../b": "",
		"quay.io:": "", "quay.io:0": "", "quay.io:05": "", "quay.io:65536": "",
		"*": "", "*.example.com/a": "", "*.example.com:80": "", "a*.example.com": "", "-a.io": "", "a-.io": "", "a..io": "",
		"user@quay.io": "", "https://quay.io": "", "quay.io/a:tag": "",
		"quay.io/a@sha256:0": "", "quay.io\\a": "", "quay.io/a b": "", "quay.io\n": "", "[fd00::1]:5000": "",
	} {
		if s, ok := parseScope(text); ok != (want != "") || ok && s.String() != want {
			t.Errorf("%q is %q, %v", text, s, ok)
		}
	}
	for pair, want := range map[[2]string]bool{
		{"quay.io", "quay.io/a"}: true, {"quay.io/a", "quay.io/a"}: true, {"quay.io/a", "quay.io/a/b"}: true,
		{"quay.io/a", "quay.io/ab"}: false, {"quay.io/a", "quay.io"}: false,
		{"quay.io", "quay.io:5000"}: false, {"*.io", "quay.io/a"}: true, {"*.io", "quay.io:5000"}: true,
		{"*.quay.io", "quay.io"}: false, {"*.io", "*.quay.io"}: true, {"*.quay.io", "*.io"}: false,
		{"quay.io", "*.quay.io"}: false,
	} {
		outer, _ := parseScope(pair[0])
		inner, _ := parseScope(pair[1])
		if outer.containsScope(inner) != want {
			t.Errorf("%s contains %s: %v", outer, inner, !want)
		}
	}
}
