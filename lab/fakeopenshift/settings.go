package fakeopenshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Namespaces and names of the settings of administrators and OpenShift operators.
const (
	configNamespace        = "openshift-config"
	managedConfigNamespace = "openshift-config-managed"

	theCluster       = "cluster" // the name of singleton objects
	controllerConfig = "machine-config-controller"
	workerPool       = "worker"
)

var (
	proxyResource            = configv1.SchemeGroupVersion.WithResource("proxies")
	imageResource            = configv1.SchemeGroupVersion.WithResource("images")
	infrastructureResource   = configv1.SchemeGroupVersion.WithResource("infrastructures")
	configNetworkResource    = configv1.SchemeGroupVersion.WithResource("networks")
	operatorNetworkResource  = operatorv1.SchemeGroupVersion.WithResource("networks")
	controllerConfigResource = machineconfigv1.SchemeGroupVersion.WithResource("controllerconfigs")
	poolResource             = machineconfigv1.SchemeGroupVersion.WithResource("machineconfigpools")
	machineConfigResource    = machineconfigv1.SchemeGroupVersion.WithResource("machineconfigs")
	kubeletConfigResource    = machineconfigv1.SchemeGroupVersion.WithResource("kubeletconfigs")
)

// followSettings applies the cluster's settings after each change of an input, as the cluster network operator
// and the machine config operator do. The outputs are not watched: a manual change of an output is only
// corrected after the next change of a setting.
func (s *simulator) followSettings(ctx context.Context) (*controller, error) {
	c := newController("settings", s.log, s.applySettings)
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.queue.Add(theCluster) },
		UpdateFunc: func(any, any) { c.queue.Add(theCluster) },
		DeleteFunc: func(any) { c.queue.Add(theCluster) },
	}
	watched := dynamicinformer.NewDynamicSharedInformerFactory(s.dynamic, 0)
	var all []cache.SharedIndexInformer
	for _, resource := range []schema.GroupVersionResource{
		proxyResource, imageResource, operatorNetworkResource, kubeletConfigResource, poolResource,
	} {
		all = append(all, watched.ForResource(resource).Informer())
	}
	for _, namespace := range []string{configNamespace, managedConfigNamespace} {
		factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(namespace))
		all = append(all, factory.Core().V1().ConfigMaps().Informer())
		defer factory.StartWithContext(ctx) // after the handlers are added
	}
	for _, informer := range all {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	watched.Start(ctx.Done())
	return c, nil
}

// applySettings applies all settings, because changes are small and rare.
func (s *simulator) applySettings(ctx context.Context, _ string) error {
	return errors.Join(s.mergeProxy(ctx), s.reportMTU(ctx), s.fillControllerConfig(ctx), s.renderWorkers(ctx))
}

// read reads a cluster-scoped object.
func (s *simulator) read(ctx context.Context, resource schema.GroupVersionResource, name string, into any) error {
	object, err := s.dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read %s %s: %w", resource.Resource, name, err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}

// patchObject patches fields of a cluster-scoped object. A missing object is no error.
func (s *simulator) patchObject(ctx context.Context, resource schema.GroupVersionResource, name string, change any,
	subresource ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = s.dynamic.Resource(resource).Patch(ctx, name, types.MergePatchType, data,
		metav1.PatchOptions{}, subresource...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("change %s %s: %w", resource.Resource, name, err)
	}
	if err == nil {
		s.log.Info("followed a setting", "resource", resource.Resource, "object", name)
	}
	return nil
}

// configMap returns the data of a ConfigMap; nil if it does not exist.
func (s *simulator) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	object, err := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return object.Data, nil
}

func currentTimestamp() string { return time.Now().UTC().Format(time.RFC3339) }
