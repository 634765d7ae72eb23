package fakeopenshift

import (
	"context"
	"encoding/pem"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const (
	// injectBundle is the annotation that requests the certificate of the service CA for a ConfigMap.
	injectBundle = "service.beta.openshift.io/inject-cabundle"
	// serviceBundleKey is the key of the injected certificate.
	serviceBundleKey = "service-ca.crt"
)

// runServiceCA starts the controllers of the service CA with a new authority.
func (s *simulator) runServiceCA(ctx context.Context) ([]*controller, error) {
	ca, err := newServiceCA()
	if err != nil {
		return nil, err
	}
	serving, err := s.serveServices(ctx, ca)
	if err != nil {
		return nil, err
	}
	injecting, err := s.injectBundles(ctx, ca)
	return []*controller{serving, injecting}, err
}

// injectBundles writes the certificate of the authority to each ConfigMap that requests it.
func (s *simulator) injectBundles(ctx context.Context, ca *serviceCA) (*controller, error) {
	c := newController("service-ca-bundle", s.log, func(ctx context.Context, key string) error {
		namespace, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return err
		}
		return s.injectBundle(ctx, ca, namespace, name)
	})
	factory := informers.NewSharedInformerFactory(s.client, 0)
	add := func(object any) {
		if m, ok := object.(*corev1.ConfigMap); ok && m.Annotations[injectBundle] == "true" {
			c.queue.Add(m.Namespace + "/" + m.Name)
		}
	}
	_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) }})
	factory.StartWithContext(ctx)
	return c, err
}

func (s *simulator) injectBundle(ctx context.Context, ca *serviceCA, namespace, name string) error {
	found, err := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignoreGone(err)
	}
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw}))
	if found.Annotations[injectBundle] != "true" || found.Data[serviceBundleKey] == bundle {
		return nil
	}
	found.Data = map[string]string{serviceBundleKey: bundle} // other keys are removed, as in a cluster
	_, err = s.client.CoreV1().ConfigMaps(namespace).Update(ctx, found, metav1.UpdateOptions{})
	return ignoreGone(err)
}
