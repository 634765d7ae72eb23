package testenv

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func readManifests(t *testing.T, namespace string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Manifests(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// convertObject parses an object and refuses fields that its type does not have.
func convertObject[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object,
		&typed, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return typed
}

func ofKind(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return objects[i]
}

func TestNamespace(t *testing.T) {
	//
	t.Run("everything follows the namespace that is chosen", func(t *testing.T) {
		const other = "windows-operator"
		clusterWide := []string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Namespace"}
		for _, object := range readManifests(t, other) {
			if namespace := object.GetNamespace(); namespace != other && !slices.Contains(clusterWide, object.GetKind()) {
				t.Errorf("%s %s is in namespace %q", object.GetKind(), object.GetName(), namespace)
			}
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, old := range []string{`"namespace":"system"`, `"name":"system"`, Namespace} {
				if strings.Contains(string(text), old) {
					t.Errorf("%s %s still says %s", object.GetKind(), object.GetName(), old)
				}
			}
		}
	})
	t.Run("the roles are given to the operator's ServiceAccount", func(t *testing.T) {
		objects := readManifests(t, "windows-operator")
		account := ofKind(t, objects, "ServiceAccount")
		want := rbacv1.Subject{Kind: "ServiceAccount", Name: account.GetName(), Namespace: "windows-operator"}
		cluster := convertObject[rbacv1.ClusterRoleBinding](t, ofKind(t, objects, "ClusterRoleBinding"))
		own := convertObject[rbacv1.RoleBinding](t, ofKind(t, objects, "RoleBinding"))
		for _, subjects := range [][]rbacv1.Subject{cluster.Subjects, own.Subjects} {
			if !slices.Equal(subjects, []rbacv1.Subject{want}) {
				t.Errorf("subjects %v, want %v", subjects, want)
			}
		}
		if role := ofKind(t, objects, "ClusterRole").GetName(); cluster.RoleRef.Name != role {
			t.Errorf("the ClusterRoleBinding gives %s, not %s", cluster.RoleRef.Name, role)
		}
		if role := ofKind(t, objects, "Role").GetName(); own.RoleRef.Name != role {
			t.Errorf("the RoleBinding gives %s, not %s", own.RoleRef.Name, role)
		}
	})
	t.Run("the usual namespace is monitored", func(t *testing.T) {
		namespace := ofKind(t, readManifests(t, Namespace), "Namespace")
		if namespace.GetName() != Namespace || namespace.GetLabels()["openshift.io/cluster-monitoring"] != "true" {
			t.Errorf("%s has labels %v", namespace.GetName(), namespace.GetLabels())
		}
	})
}

func TestDeployment(t *testing.T) {
	deployment := convertObject[appsv1.Deployment](t, ofKind(t, readManifests(t, Namespace), "Deployment"))
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	//
	t.Run("it runs on Linux nodes only, control-plane nodes among them", func(t *testing.T) {
		if pod.NodeSelector[corev1.LabelOSStable] != "linux" {
			t.Errorf("the node selector is %v", pod.NodeSelector)
		}
		taint := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
		tolerated := slices.ContainsFunc(pod.Tolerations, func(toleration corev1.Toleration) bool {
			return toleration.Key == taint.Key && toleration.Effect == taint.Effect &&
				toleration.Operator == corev1.TolerationOpExists
		})
		if !tolerated {
			t.Errorf("the taint of control-plane nodes is not tolerated: %v", pod.Tolerations)
		}
	})
	t.Run("it is given its own namespace", func(t *testing.T) {
		i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "WATCH_NAMESPACE" })
		if i < 0 || container.Env[i].ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
			t.Errorf("the environment is %v", container.Env)
		}
	})
}
