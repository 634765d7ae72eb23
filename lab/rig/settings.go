package rig

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

// Where the cluster's administrators keep settings. What OpenShift's operators make of them, the lab's stand-ins do.
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

// theCluster is the name of objects that there is one of.
const theCluster = "cluster"

// SetProxy sets the cluster-wide proxy; the zero value takes it away.
func (r *Rig) SetProxy(ctx context.Context, spec configv1.ProxySpec) error {
	proxy := &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.change(ctx, proxy, func() { proxy.Spec = spec })
}

// UpgradeCluster has the cluster's own upgrade to a version begin, and completes it if that is wanted.
func (r *Rig) UpgradeCluster(ctx context.Context, version string, complete bool) error {
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

// SetTrustedCAs sets the authorities, in PEM, that the whole cluster trusts; "" takes them away.
func (r *Rig) SetTrustedCAs(ctx context.Context, bundle string) error {
	var data map[string]string
	if bundle != "" {
		data = map[string]string{bundleKey: bundle}
	}
	return r.setConfigMap(ctx, configNamespace, userCABundle, data)
}

// SetKubeletClientCAs sets the authorities, in PEM, that kubelets verify their clients with, and returns those before.
func (r *Rig) SetKubeletClientCAs(ctx context.Context, bundle string) (before string, err error) {
	const name = "kube-apiserver-client-ca"
	object := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: managedNamespace, Name: name}, object); err != nil {
		return "", fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return object.Data[bundleKey], r.setConfigMap(ctx, managedNamespace, name, map[string]string{bundleKey: bundle})
}

// SetMetricsClientCAs sets the authorities, in PEM, that the API server publishes as those of its clients, and returns
// those before. The API server adds its own when they are missing.
func (r *Rig) SetMetricsClientCAs(ctx context.Context, bundle string) (before string, err error) {
	const key = "client-ca-file"
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}}
	err = r.change(ctx, object, func() { before, object.Data[key] = object.Data[key], bundle })
	return before, err
}

// SetRegistryCAs sets the authorities, in PEM, of image registries by their host, with ".." before a port; none takes
// them away.
func (r *Rig) SetRegistryCAs(ctx context.Context, byHost map[string]string) error {
	if err := r.setConfigMap(ctx, configNamespace, registryCAs, byHost); err != nil {
		return err
	}
	name := registryCAs
	if len(byHost) == 0 {
		name = ""
	}
	image := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.change(ctx, image, func() { image.Spec.AdditionalTrustedCA.Name = name })
}

// SetRegistrySources says which image registries are insecure, blocked or allowed.
func (r *Rig) SetRegistrySources(ctx context.Context, sources configv1.RegistrySources) error {
	image := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.change(ctx, image, func() { image.Spec.RegistrySources = sources })
}

// SetDigestMirrors makes an ImageDigestMirrorSet; none takes it away.
func (r *Rig) SetDigestMirrors(ctx context.Context, mirrors ...configv1.ImageDigestMirrors) error {
	set := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: mirrorSet}}
	return r.makeOrDelete(ctx, set, len(mirrors) > 0, func() { set.Spec.ImageDigestMirrors = mirrors })
}

// SetTagMirrors makes an ImageTagMirrorSet; none takes it away.
func (r *Rig) SetTagMirrors(ctx context.Context, mirrors ...configv1.ImageTagMirrors) error {
	set := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: mirrorSet}}
	return r.makeOrDelete(ctx, set, len(mirrors) > 0, func() { set.Spec.ImageTagMirrors = mirrors })
}

// SetPullSecret sets the cluster's pull secret, as .dockerconfigjson has it, and returns the one before.
func (r *Rig) SetPullSecret(ctx context.Context, content []byte) (before []byte, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: "pull-secret"}}
	err = r.change(ctx, secret, func() {
		before = secret.Data[corev1.DockerConfigJsonKey]
		secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: content}
	})
	return before, err
}

// SetExporterTLS sets the certificate that exporters serve with, and its key, both in PEM; none takes it away.
func (r *Rig) SetExporterTLS(ctx context.Context, certificate, key []byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: exporterSecret},
		Type: corev1.SecretTypeTLS}
	return r.makeOrDelete(ctx, secret, len(certificate) > 0, func() {
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
	})
}

// SetKubeletSettings makes a KubeletConfig for the workers; none takes it away.
func (r *Rig) SetKubeletSettings(ctx context.Context, settings map[string]any) error {
	raw, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("write the kubelets' settings: %w", err)
	}
	config := &machineconfigv1.KubeletConfig{ObjectMeta: metav1.ObjectMeta{Name: kubeletSettings}}
	return r.makeOrDelete(ctx, config, len(settings) > 0, func() {
		config.Spec.MachineConfigPoolSelector = &metav1.LabelSelector{MatchLabels: map[string]string{workerPoolLabel: ""}}
		config.Spec.KubeletConfig = &runtime.RawExtension{Raw: raw}
	})
}

// PausePool stops the workers from following settings, or lets them follow again.
func (r *Rig) PausePool(ctx context.Context, paused bool) error {
	pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	return r.change(ctx, pool, func() { pool.Spec.Paused = paused })
}

// ChangeNetwork changes the configuration of OVN-Kubernetes.
func (r *Rig) ChangeNetwork(ctx context.Context, do func(*operatorv1.OVNKubernetesConfig)) error {
	network := &operatorv1.Network{ObjectMeta: metav1.ObjectMeta{Name: theCluster}}
	return r.change(ctx, network, func() { do(network.Spec.DefaultNetwork.OVNKubernetesConfig) })
}

func (r *Rig) setConfigMap(ctx context.Context, namespace, name string, data map[string]string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return r.makeOrDelete(ctx, object, len(data) > 0, func() { object.Data = data })
}

// change reads an object, changes it and writes it, again if others have changed it meanwhile.
func (r *Rig) change(ctx context.Context, object client.Object, do func()) error {
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

// makeOrDelete makes or changes an object that is wanted, and deletes one that is not.
func (r *Rig) makeOrDelete(ctx context.Context, object client.Object, wanted bool, fill func()) error {
	if !wanted {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, object)); err != nil {
			return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
		}
		return nil
	}
	fill()
	err := r.strict.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return r.change(ctx, object, fill)
	}
	if err != nil {
		return fmt.Errorf("make %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
