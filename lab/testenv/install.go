package testenv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the administrator's objects, as in the guide.
const (
	serviceAccount       = "windows-machine-config-operator"
	privateKeySecret     = "cloud-private-key"
	privateKeySecretKey  = "private-key.pem"
	instancesConfigMap   = "windows-instances"
	exampleInstancesFile = "windows-instances.yaml"
)

// InstallOperator applies deploy/ for the namespace, "" for the default, and returns a configuration with the rights
// of the operator's ServiceAccount. The Deployment is scaled to 0, because no node of the lab could run it.
func (r *Environment) InstallOperator(ctx context.Context, namespace string) (*rest.Config, error) {
	if namespace == "" {
		namespace = Namespace
	}
	objects, err := Manifests(namespace)
	if err != nil {
		return nil, err
	}
	return r.InstallObjects(ctx, namespace, objects)
}

// InstallObjects applies the objects of an operator that is not installed from deploy/. The ServiceAccount must have
// the standard name.
func (r *Environment) InstallObjects(ctx context.Context, namespace string, objects []*unstructured.Unstructured) (*rest.Config,
	error) {
	if err := r.ApplyObjects(ctx, objects); err != nil {
		return nil, fmt.Errorf("install the operator: %w", err)
	}
	config, err := r.cluster.ServiceAccountConfig(ctx, namespace, serviceAccount)
	if err != nil {
		return nil, fmt.Errorf("install the operator: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.namespace, r.operatorConfig = namespace, config
	return config, nil
}

// ApplyObjects applies objects, waits until the API server serves their custom resource definitions, and scales
// Deployments to 0.
func (r *Environment) ApplyObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := r.installObject(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *Environment) installObject(ctx context.Context, object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		return r.applyCRD(ctx, object)
	case "Deployment":
		if err := unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas"); err != nil {
			return err
		}
	}
	return r.Apply(ctx, object)
}

// CreateKey creates the Secret with the key that the hosts accept, as `oc create secret generic --from-file` does.
func (r *Environment) CreateKey(ctx context.Context) error { return r.SetKey(ctx, r.PrivateKey()) }

// SetKey creates or replaces the Secret with any content.
func (r *Environment) SetKey(ctx context.Context, privateKey []byte) error {
	return r.setKeys(ctx, map[string][]byte{privateKeySecretKey: privateKey})
}

func (r *Environment) setKeys(ctx context.Context, data map[string][]byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: privateKeySecret},
		Data:       data,
		Type:       corev1.SecretTypeOpaque,
	}
	err := r.Client.Create(ctx, secret)
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create Secret %s: %w", privateKeySecret, err)
	}
	if err == nil {
		return nil
	}
	if err := r.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("replace Secret %s: %w", privateKeySecret, err)
	}
	return nil
}

// DeleteKey deletes the Secret.
func (r *Environment) DeleteKey(ctx context.Context) error {
	return r.Client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(),
		Name: privateKeySecret}})
}

// SetInstances creates or replaces the ConfigMap windows-instances, as in the example, with exactly these entries.
func (r *Environment) SetInstances(ctx context.Context, entries map[string]string) error {
	example, err := Example(exampleInstancesFile)
	if err != nil {
		return err
	}
	data := map[string]any{}
	for address, value := range entries {
		data[address] = value
	}
	example.SetNamespace(r.Namespace())
	example.Object["data"] = data
	return r.Apply(ctx, example)
}

// ListHosts creates or replaces the ConfigMap windows-instances with hosts by computer name; with all hosts if no
// name is given.
func (r *Environment) ListHosts(ctx context.Context, names ...string) error {
	return r.SetInstances(ctx, r.Entries(names...))
}

// Entries returns the entries of windows-instances for hosts by computer name; for all hosts if no name is given.
func (r *Environment) Entries(names ...string) map[string]string {
	entries := map[string]string{}
	for _, h := range r.hostsNamed(names) {
		address, value := h.Entry()
		entries[address] = value
	}
	return entries
}

// DeleteInstances deletes the ConfigMap windows-instances.
func (r *Environment) DeleteInstances(ctx context.Context) error {
	return r.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(),
		Name: instancesConfigMap}})
}
