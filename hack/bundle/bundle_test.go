package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

const root = "../.."

// prometheus is the name of OpenShift's Prometheus and of its roles here.
const prometheus = "prometheus-k8s"

func read(t *testing.T) *sources {
	t.Helper()
	lines := support.ReleaseLines()
	s, err := readSources(root, lines[len(lines)-1])
	if err != nil {
		t.Fatal(err)
	}
	if s.flavor, err = parseFlavor("redhat"); err != nil {
		t.Fatal(err)
	}
	return s
}

func csvOf(t *testing.T, s *sources) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	csv, err := clusterServiceVersion(s, "")
	if err != nil {
		t.Fatal(err)
	}
	return csv
}

// makefileVersion returns the version in the Makefile.
func makefileVersion(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\nVERSION := ")
	version, _, _ := strings.Cut(rest, "\n")
	return version
}

func TestBundle_GeneratedFilesAreUpToDate(t *testing.T) {
	directory := t.TempDir()
	if err := run(options{root: root, out: directory, version: makefileVersion(t), flavor: "redhat"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := readFiles(t, directory)
	got := map[string]string{}
	for _, dir := range []string{"bundle", "catalog"} {
		for name, text := range readFiles(t, filepath.Join(root, "deploy", "olm", dir)) {
			got[dir+"/"+name] = text
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deploy/olm is out of date, run `make generate` (-generated +there):\n%s", diff)
	}
}

// readFiles returns the files of a directory.
func readFiles(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(directory, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestBundle_InstallsSameAsDeploy(t *testing.T) {
	s := read(t)
	csv := csvOf(t, s)
	strategy := csv.Spec.InstallStrategy.StrategySpec
	//
	t.Run("the operator has the same rights, in its namespace and in the cluster", func(t *testing.T) {
		if diff := cmp.Diff(s.role.Rules, strategy.Permissions[0].Rules); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(s.clusterRole.Rules, strategy.ClusterPermissions[0].Rules); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("it runs as deploy/ has it, but OLM tells it its namespace", func(t *testing.T) {
		want := *s.deployment.Spec.DeepCopy()
		got := strategy.DeploymentSpecs[0].Spec
		env := got.Template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "WATCH_NAMESPACE" })
		if i < 0 || env[i].ValueFrom.FieldRef.FieldPath != "metadata.annotations['olm.targetNamespaces']" {
			t.Fatalf("the environment is %+v", env)
		}
		want.Template.Spec.Containers[0].Env[i].ValueFrom.FieldRef.FieldPath = env[i].ValueFrom.FieldRef.FieldPath
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("each definition is owned", func(t *testing.T) {
		var owned []string
		for _, definition := range csv.Spec.CustomResourceDefinitions.Owned {
			owned = append(owned, definition.Name)
		}
		if want := slices.Sorted(maps.Keys(s.definitions)); !slices.Equal(owned, want) || len(owned) != 2 {
			t.Errorf("owned %v, deploy/ has %v", owned, want)
		}
	})
	t.Run("nothing but CSV, definitions, the metrics' Service and the rights of the nodes' programs and Prometheus: no finalizer, no webhook", func(t *testing.T) {
		guide, err := os.ReadFile(filepath.Join(root, "docs", "uninstall.md"))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range readFiles(t, filepath.Join(root, "deploy", "olm", "bundle", "manifests")) {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			switch object.Kind {
			case "ClusterServiceVersion":
			case "Service": // deleted with the ClusterServiceVersion, which OLM sets as the owner
				if object.Name != packageName+"-metrics" || object.Namespace != "" {
					t.Errorf("%s is %s in namespace %q", name, object.Name, object.Namespace)
				}
			case "Role", "RoleBinding": // deleted with the ClusterServiceVersion, or at the latest with the namespace
				if object.Name != prometheus || object.Namespace != "" {
					t.Errorf("%s is %s in namespace %q", name, object.Name, object.Namespace)
				}
			case "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding": // kept by OLM
				if row := "| `" + object.Kind + "` | | `" + object.Name + "` |"; !strings.Contains(string(guide), row) {
					t.Errorf("docs/uninstall.md does not list %s: %s", name, row)
				}
			default:
				t.Errorf("%s is of kind %s", name, object.Kind)
			}
			for _, word := range []string{"finalizers:", "webhookdefinitions:"} {
				if strings.Contains(text, word) {
					t.Errorf("%s has %s", name, word)
				}
			}
		}
	})
	t.Run("a mirror of the release has the image that nodes pull for each pod", func(t *testing.T) {
		env := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "RELATED_IMAGE_WINDOWS_PAUSE" })
		if i < 0 || !slices.Contains(csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: "windows-pause", Image: env[i].Value}) {
			t.Errorf("related images %v, environment %v", csv.Spec.RelatedImages, env)
		}
	})
	t.Run("cloud-node-manager's group has its rights, and no account of the cluster has them", func(t *testing.T) {
		var role rbacv1.ClusterRole
		var binding rbacv1.ClusterRoleBinding
		const name = packageName + "-cloud-node-manager"
		for file, into := range map[string]any{"clusterrole_" + name: &role, "clusterrolebinding_" + name: &binding} {
			if err := yaml.UnmarshalStrict(s.nodeRights[file], into); err != nil {
				t.Fatal(err)
			}
		}
		want := []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch", "update"}},
			{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
		}
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			t.Error(diff)
		}
		group := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:cloud-node-managers"}}
		if diff := cmp.Diff(group, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name {
			t.Errorf("role %s: %s", binding.RoleRef.Name, diff)
		}
	})
	t.Run("OpenShift's Prometheus finds the nodes' exporters in the operator's namespace, and reads nothing else", func(t *testing.T) {
		var role rbacv1.Role
		var binding rbacv1.RoleBinding
		for file, into := range map[string]any{"role_" + prometheus: &role, "rolebinding_" + prometheus: &binding} {
			if err := yaml.UnmarshalStrict(s.nodeRights[file], into); err != nil {
				t.Fatal(err)
			}
		}
		reads := []string{"get", "list", "watch"}
		want := []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services", "endpoints", "pods"}, Verbs: reads},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: reads},
		}
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			t.Error(diff)
		}
		account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-monitoring", Name: prometheus}}
		if diff := cmp.Diff(account, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name {
			t.Errorf("role %s: %s", binding.RoleRef.Name, diff)
		}
	})
	t.Run("the image that is given", func(t *testing.T) {
		const image = "registry.example.com/wmco@sha256:0123"
		csv, err := clusterServiceVersion(s, image)
		if err != nil {
			t.Fatal(err)
		}
		container := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
		if container.Image != image || csv.Annotations["containerImage"] != image || csv.Spec.RelatedImages[0].Image != image {
			t.Errorf("%s, %v", container.Image, csv.Spec.RelatedImages)
		}
	})
}

//
func TestBundle_NotOfferedToUnsupportedCluster(t *testing.T) {
	s := read(t)
	s.line = support.ReleaseLine{Operator: 12, Minors: []support.Minor{
		{OpenShift: "4.22", Kubernetes: "1.35"}, {OpenShift: "4.23", Kubernetes: "1.36"}, {OpenShift: "5.0", Kubernetes: "1.36"}}}
	csv := csvOf(t, s)
	if csv.Spec.MinKubeVersion != "1.35.0" {
		t.Errorf("OLM installs it from Kubernetes %s on", csv.Spec.MinKubeVersion)
	}
	if got := bundleAnnotations(s)["com.redhat.openshift.versions"]; got != "v4.22-v5.0" {
		t.Errorf("it is in the catalogs of %s", got)
	}
	t.Run("and the cluster is upgraded no further than the newest version", func(t *testing.T) {
		if got := releaseProperties(s); !slices.Equal(got, []property{{"olm.maxOpenShiftVersion", "5.0"}}) {
			t.Error(got)
		}
	})
	t.Run("the support table decides", func(t *testing.T) {
		lines := support.ReleaseLines()
		present := lines[len(lines)-1]
		if !reflect.DeepEqual(read(t).line, present) || !strings.HasPrefix(makefileVersion(t), "12.") || present.Operator != 12 {
			t.Errorf("the line is %+v, the version %s", present, makefileVersion(t))
		}
	})
}

func TestReleases_ListWithoutCurrentVersionLastRejected(t *testing.T) {
	for name, test := range map[string]struct {
		releases []release
		version  string
		message  string
	}{
		"another version": {[]release{newFinalRelease("12.0.0")}, "12.0.1", "add the new release there"},
		"no release":      {nil, "12.0.0", "names no release"},
		"not a version":   {[]release{{Version: "twelve"}}, "twelve", `"twelve" is not a version`},
		//
		"a pre-release": {[]release{newFinalRelease("12.0.0"), newFinalRelease("12.1.0-rc.1")}, "12.1.0-rc.1",
			"12.1.0-rc.1 is a pre-release: channel stable has final releases only"},
		"in the wrong order": {[]release{newFinalRelease("12.0.1"), newFinalRelease("12.0.0")}, "12.0.0", "list the oldest first"},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t)
			s.releases.Releases = test.releases
			if _, err := generateFiles(s, options{version: test.version}); err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %v", err)
			}
		})
	}
}
