package testenv

import (
	"context"
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects with the settings of cluster administrators. The lab's stand-ins act on them like OpenShift's operators.
const (
	configNamespace  = "openshift-config"
	managedNamespace = "openshift-config-managed"
	userCABundle     = "user-ca-bundle"
	registryCAs      = "lab-registry-cas"
	mirrorSet        = "lab-mirrors"
	kubeletSettings  = "lab-kubelet-settings"
	exporterSecret   = "windows-machine-config-operator-tls"
	bundleKey        = "ca-bundle.crt"

	workerPoolLabel = "pools.operator.machineconfiguration.openshift.io/worker"
)

// theCluster is the name of singleton objects.
const theCluster = "cluster"

// SetProxy sets the cluster-wide proxy; the zero value removes it.
func (r *Environment) SetProxy(ctx context.Context, spec configv1.ProxySpec) error {
	proxy := &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.updateObject(ctx, proxy, func() { proxy.Spec = spec })
}

// UpgradeCluster starts the cluster's own upgrade to a version, and completes the upgrade if complete is set.
func (r *Environment) UpgradeCluster(ctx context.Context, version string, complete bool) error {
	object := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		now := metav1.Now()
		if history := object.Status.History; len(history) == 0 || history[0].Version != version {
			object.Status.Desired.Version = version
			begun := configv1.UpdateHistory{State: configv1.PartialUpdate, Version: version, Image: object.Status.Desired.Image,
				StartedTime: now}
			object.Status.History = append([]configv1.UpdateHistory{begun}, history...)
		}
		if complete {
			object.Status.History[0].State, object.Status.History[0].CompletionTime = configv1.CompletedUpdate, &now
		}
		return r.Client.Status().Update(ctx, object)
	})
	if err != nil {
		return fmt.Errorf("upgrade the cluster to %s: %w", version, err)
	}
	return nil
}

// SetTrustedCAs sets the authorities, in PEM, that the cluster trusts; "" removes them.
func (r *Environment) SetTrustedCAs(ctx context.Context, bundle string) error {
	var data map[string]string
	if bundle != "" {
		data = map[string]string{bundleKey: bundle}
	}
	return r.setConfigMap(ctx, configNamespace, userCABundle, data)
}

// SetKubeletClientCAs sets the authorities, in PEM, that kubelets verify clients with, and returns the previous ones.
func (r *Environment) SetKubeletClientCAs(ctx context.Context, bundle string) (before string, err error) {
	const name = "kube-apiserver-client-ca"
	object := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: managedNamespace, Name: name}, object); err != nil {
		return "", fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return object.Data[bundleKey], r.setConfigMap(ctx, managedNamespace, name, map[string]string{bundleKey: bundle})
}

// SetMetricsClientCAs sets the client authorities, in PEM, that the API server publishes, and returns the previous
// ones. The API server adds its own authorities if missing.
func (r *Environment) SetMetricsClientCAs(ctx context.Context, bundle string) (before string, err error) {
	const key = "client-ca-file"
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}}
	err = r.updateObject(ctx, object, func() { before, object.Data[key] = object.Data[key], bundle })
	return before, err
}

// SetRegistryCAs sets the authorities, in PEM, of image registries by host, with ".." before a port; an empty map
// removes them.
func (r *Environment) SetRegistryCAs(ctx context.Context, byHost map[string]string) error {
	if err := r.setConfigMap(ctx, configNamespace, registryCAs, byHost); err != nil {
		return err
	}
	name := registryCAs
	if len(byHost) == 0 {
		name = ""
	}
	image := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.updateObject(ctx, image, func() { image.Spec.AdditionalTrustedCA.Name = name })
}

// SetRegistrySources sets the insecure, blocked and allowed image registries.
func (r *Environment) SetRegistrySources(ctx context.Context, sources configv1.RegistrySources) error {
	image := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.updateObject(ctx, image, func() { image.Spec.RegistrySources = sources })
}

// SetDigestMirrors creates or replaces an ImageDigestMirrorSet; without arguments, it deletes the set.
func (r *Environment) SetDigestMirrors(ctx context.Context, mirrors ...configv1.ImageDigestMirrors) error {
	set := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: mirrorSet}}
	return r.createOrDelete(ctx, set, len(mirrors) > 0, func() { set.Spec.ImageDigestMirrors = mirrors })
}

// SetTagMirrors creates or replaces an ImageTagMirrorSet; without arguments, it deletes the set.
func (r *Environment) SetTagMirrors(ctx context.Context, mirrors ...configv1.ImageTagMirrors) error {
	set := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: mirrorSet}}
	return r.createOrDelete(ctx, set, len(mirrors) > 0, func() { set.Spec.ImageTagMirrors = mirrors })
}

// SetPullSecret sets the cluster's pull secret in the form .dockerconfigjson, and returns the previous one.
func (r *Environment) SetPullSecret(ctx context.Context, content []byte) (before []byte, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: "pull-secret"}}
	err = r.updateObject(ctx, secret, func() {
		before = secret.Data[corev1.DockerConfigJsonKey]
		secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: content}
	})
	return before, err
}

// SetExporterTLS sets the serving certificate of exporters and its key, both in PEM; an empty certificate removes
// both.
func (r *Environment) SetExporterTLS(ctx context.Context, certificate, key []byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: exporterSecret},
		Type: corev1.SecretTypeTLS}
	return r.createOrDelete(ctx, secret, len(certificate) > 0, func() {
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
	})
}

// SetKubeletSettings creates or replaces a KubeletConfig for the workers; empty settings delete it.
func (r *Environment) SetKubeletSettings(ctx context.Context, settings map[string]any) error {
	raw, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("write the kubelets' settings: %w", err)
	}
	config := &machineconfigv1.KubeletConfig{ObjectMeta: metav1.ObjectMeta{Name: kubeletSettings}}
	return r.createOrDelete(ctx, config, len(settings) > 0, func() {
		config.Spec.MachineConfigPoolSelector = &metav1.LabelSelector{MatchLabels: map[string]string{workerPoolLabel: ""}}
		config.Spec.KubeletConfig = &runtime.RawExtension{Raw: raw}
	})
}

// PausePool pauses or resumes the rollout of settings to the workers.
func (r *Environment) PausePool(ctx context.Context, paused bool) error {
	pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	return r.updateObject(ctx, pool, func() { pool.Spec.Paused = paused })
}

// ChangeNetwork changes the configuration of OVN-Kubernetes.
func (r *Environment) ChangeNetwork(ctx context.Context, do func(*operatorv1.OVNKubernetesConfig)) error {
	network := &operatorv1.Network{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.updateObject(ctx, network, func() { do(network.Spec.DefaultNetwork.OVNKubernetesConfig) })
}

func (r *Environment) setConfigMap(ctx context.Context, namespace, name string, data map[string]string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return r.createOrDelete(ctx, object, len(data) > 0, func() { object.Data = data })
}

// updateObject reads, changes and writes an object, and retries on conflicts.
func (r *Environment) updateObject(ctx context.Context, object client.Object, do func()) error {
	key := client.ObjectKeyFromObject(object)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.Client.Get(ctx, key, object); err != nil {
			return err
		}
		do()
		return r.strict.Update(ctx, object)
	})
	if err != nil {
		return fmt.Errorf("change %T %s: %w", object, key, err)
	}
	return nil
}

// createOrDelete creates or updates a desired object, and deletes an undesired one.
func (r *Environment) createOrDelete(ctx context.Context, object client.Object, exists bool, fill func()) error {
	if !exists {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, object)); err != nil {
			return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
		}
		return nil
	}
	fill()
	err := r.strict.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return r.updateObject(ctx, object, fill)
	}
	if err != nil {
		return fmt.Errorf("make %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
