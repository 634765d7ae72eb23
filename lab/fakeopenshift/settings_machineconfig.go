package fakeopenshift

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names and keys of ConfigMaps that the machine config operator reads.
const (
	userBundle       = "user-ca-bundle"
	bundleKey        = "ca-bundle.crt"
	clientCAs        = "kube-apiserver-client-ca"
	imageRegistryCAs = "image-registry-ca"
)

// fillControllerConfig copies the administrators' trusted authorities to ControllerConfig, which all nodes
// read. Source: syncRenderConfig of the machine config operator.
func (s *simulator) fillControllerConfig(ctx context.Context) error {
	var proxy configv1.Proxy
	var image configv1.Image
	var config machineconfigv1.ControllerConfig
	if err := s.read(ctx, proxyResource, theCluster, &proxy); err != nil {
		return err
	}
	if err := s.read(ctx, imageResource, theCluster, &image); err != nil {
		return err
	}
	if err := s.read(ctx, controllerConfigResource, controllerConfig, &config); err != nil {
		return err
	}
	var changes []fieldChange
	trusted, err := s.trustBundle(ctx, proxy.Spec.TrustedCA.Name)
	if err != nil {
		return err
	}
	if string(trusted) != string(config.Spec.AdditionalTrustBundle) {
		changes = append(changes, fieldChange{"add", "/spec/additionalTrustBundle", trusted})
	}
	clients, err := s.configMap(ctx, managedConfigNamespace, clientCAs)
	if err != nil {
		return err
	}
	if bundle := clients[bundleKey]; bundle != "" && bundle != string(config.Spec.KubeAPIServerServingCAData) {
		changes = append(changes, fieldChange{"add", "/spec/kubeAPIServerServingCAData", []byte(bundle)})
	}
	for _, from := range []struct {
		namespace, name, field string
		now                    []machineconfigv1.ImageRegistryBundle
	}{
		{configNamespace, image.Spec.AdditionalTrustedCA.Name, "imageRegistryBundleUserData",
			config.Spec.ImageRegistryBundleUserData},
		{managedConfigNamespace, imageRegistryCAs, "imageRegistryBundleData", config.Spec.ImageRegistryBundleData},
	} {
		desired, err := s.registryBundles(ctx, from.namespace, from.name)
		if err != nil {
			return err
		}
		if len(desired) != len(from.now) || len(desired) > 0 && !reflect.DeepEqual(desired, from.now) {
			changes = append(changes, fieldChange{"add", "/spec/" + from.field, desired})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	_, err = s.dynamic.Resource(controllerConfigResource).Patch(ctx, controllerConfig, types.JSONPatchType, data,
		metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("change ControllerConfig %s: %w", controllerConfig, err)
	}
	s.log.Info("followed what administrators trust", "object", controllerConfig, "fields", len(changes))
	return nil
}

// fieldChange is an operation of a JSON patch. Fields of ControllerConfig must exist even if null, which a
// merge patch cannot express.
type fieldChange struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// trustBundle returns the authorities that the administrators trust: the bundle of the installation, and the
// proxy's bundle if it is different.
func (s *simulator) trustBundle(ctx context.Context, proxyBundle string) (bundle []byte, err error) {
	names := []string{userBundle}
	if proxyBundle != "" && proxyBundle != userBundle {
		names = append(names, proxyBundle)
	}
	for _, name := range names {
		data, err := s.configMap(ctx, configNamespace, name)
		if err != nil {
			return nil, err
		}
		text, ok := data[bundleKey]
		if !ok {
			continue
		}
		if !x509.NewCertPool().AppendCertsFromPEM([]byte(text)) {
			return nil, fmt.Errorf("ConfigMap %s/%s: key %s holds no certificate: it is not followed",
				configNamespace, name, bundleKey)
		}
		bundle = append(bundle, text...)
	}
	return bundle, nil
}

// registryBundles returns the authorities for image registries, one entry per key, in order.
func (s *simulator) registryBundles(ctx context.Context, namespace,
	name string) (bundles []machineconfigv1.ImageRegistryBundle, err error) {
	bundles = []machineconfigv1.ImageRegistryBundle{} // An empty list is not null.
	if name == "" {
		return bundles, nil
	}
	data, err := s.configMap(ctx, namespace, name)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		bundles = append(bundles, machineconfigv1.ImageRegistryBundle{File: key, Data: []byte(data[key])})
	}
	return bundles, err
}
