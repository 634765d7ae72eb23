package cluster

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNotices_CloudRegistryWithoutCredentialsReported(t *testing.T) {
	mirrors := func(mirrors ...configv1.ImageMirror) *configv1.ImageDigestMirrorSet {
		return &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "mirrors"}, Spec: configv1.ImageDigestMirrorSetSpec{
			ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: "quay.io", Mirrors: mirrors}}}}
	}
	allowed := func(registries ...string) *configv1.Image {
		return imageWith(configv1.RegistrySources{AllowedRegistries: registries})
	}
	const identity = "do not use the identity of the instance to pull from "
	const azure, gcp = configv1.AzurePlatformType, configv1.GCPPlatformType
	for name, c := range map[string]struct {
		platform configv1.PlatformType
		mirrors  *configv1.ImageDigestMirrorSet
		image    *configv1.Image
		secret   string
		want     []string
	}{
		"a cluster that names none":         {azure, mirrors("mirror.example.com"), allowed("quay.io"), "", nil},
		"a registry of another cloud":       {azure, mirrors("gcr.io"), nil, "", nil},
		"a platform without such":           {configv1.NonePlatformType, mirrors("shop.azurecr.io"), nil, "", nil},
		"credentials for the registry":      {azure, mirrors("shop.azurecr.io/team"), nil, `{"auths":{"shop.azurecr.io":{"auth":"dTpw"}}}`, nil},
		"credentials for a part":            {azure, nil, allowed("shop.azurecr.io"), `{"auths":{"shop.azurecr.io/team":{"auth":"dTpw"}}}`, nil},
		"a name below that of the registry": {azure, mirrors("a.b.azurecr.io"), nil, "", nil},
		"a mirror": {azure, mirrors("shop.azurecr.io/team", "mirror.example.com"), allowed("shop.azurecr.io"), "", []string{
			"ImageDigestMirrorSet mirrors, spec.imageDigestMirrors[0].mirrors: |" + identity + "shop.azurecr.io,|Secret openshift-config/pull-secret"}},
		"allowed registries": {gcp, nil, allowed("gcr.io", "europe-docker.pkg.dev", "quay.io"), `{"auths":{"quay.io":{"auth":"dTpw"}}}`, []string{
			"Image cluster, spec.registrySources.allowedRegistries: |" + identity + "gcr.io, europe-docker.pkg.dev,"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.infrastructure.Status.PlatformStatus.Type = c.platform
			if c.mirrors != nil {
				f.optional = append(f.optional, c.mirrors)
			}
			if c.image != nil {
				f.optional = append(f.optional, c.image)
			}
			if c.secret != "" {
				f.optional = append(f.optional, pullSecretWith(c.secret))
			}
			_, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
		})
	}
}

func TestNotices_NamespaceCredentialsReported(t *testing.T) {
	const directory = "/etc/kubernetes/credential-providers/"
	const builtIn = "kind: CredentialProviderConfig\nproviders:\n- name: acr-credential-provider\n  matchImages: ['*.azurecr.io']\n"
	const ofNamespaces = "- name: crio-credential-provider\n  matchImages: [mirror.example.com, quay.io/team]\n"
	const notice = "CRIOCredentialProviderConfig cluster, spec.matchImages|images of mirror.example.com, quay.io/team with|imagePullSecrets"
	for name, c := range map[string]struct {
		path, content string
		want          []string
	}{
		"on a cloud":                         {directory + "acr-credential-provider.yaml", builtIn + ofNamespaces, []string{notice}},
		"on a platform without a provider":   {directory + "generic-credential-provider.yaml", "providers:\n" + ofNamespaces, []string{notice}},
		"not the provider of the cloud":      {directory + "acr-credential-provider.yaml", builtIn, nil},
		"not a file that cannot be read":     {directory + "acr-credential-provider.yaml", "providers: 1\n", nil},
		"not a file of the same name beside": {"/etc/acr-credential-provider.yaml", builtIn + ofNamespaces, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.files[c.path] = file{content: c.content}
			_, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
		})
	}
}
