package fakeopenshift

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	renderedPrefix = "rendered-worker-"
	// renderedFrom is the annotation of rendered configurations created here, with the name of the original
	// configuration of the installation.
	renderedFrom     = "lab.windows-machine-config/rendered-from"
	kubeletConfigAt  = "/etc/kubernetes/kubelet.conf"
	dataURLBase64    = "data:text/plain;charset=utf-8;base64,"
	poolUpdatedFalse = "False"
	poolUpdatedTrue  = "True"
)

// renderWorkers creates a new rendered configuration of the workers when administrators change kubelet
// settings, and sets it in the pool. The workers apply the configuration at once, unless the pool is paused.
func (s *simulator) renderWorkers(ctx context.Context) error {
	var pool machineconfigv1.MachineConfigPool
	if err := s.read(ctx, poolResource, workerPool, &pool); err != nil {
		return err
	}
	base, err := s.installedWorkers(ctx, pool.Spec.Configuration.Name)
	if err != nil {
		return err
	}
	desired, err := s.kubeletSettings(ctx, &pool)
	if err != nil {
		return err
	}
	rendered, err := withKubeletSettings(base, desired)
	if err != nil {
		return err
	}
	if rendered != base {
		_, err = s.dynamic.Resource(machineConfigResource).Create(ctx, rendered, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make MachineConfig %s: %w", rendered.GetName(), err)
		}
	}
	return s.rollOut(ctx, &pool, rendered.GetName())
}

// installedWorkers returns the rendered configuration of the installation from which the pool's configuration
// was derived.
func (s *simulator) installedWorkers(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	for {
		config, err := s.dynamic.Resource(machineConfigResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read MachineConfig %s: %w", name, err)
		}
		from := config.GetAnnotations()[renderedFrom]
		if from == "" {
			return config, nil
		}
		name = from
	}
}

// kubeletSettings returns the merged settings of all KubeletConfigs for the pool; later ones take precedence.
func (s *simulator) kubeletSettings(ctx context.Context, pool *machineconfigv1.MachineConfigPool) (map[string]any,
	error) {
	list, err := s.dynamic.Resource(kubeletConfigResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list KubeletConfigs: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		first, second := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		if c := first.Compare(second.Time); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	all := map[string]any{}
	for _, item := range list.Items {
		var config machineconfigv1.KubeletConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &config); err != nil {
			return nil, fmt.Errorf("KubeletConfig %s: %w", item.GetName(), err)
		}
		selector, err := metav1.LabelSelectorAsSelector(config.Spec.MachineConfigPoolSelector)
		if err != nil {
			return nil, fmt.Errorf("KubeletConfig %s: %w", item.GetName(), err)
		}
		if config.Spec.KubeletConfig == nil || !selector.Matches(labels.Set(pool.Labels)) {
			continue
		}
		settings := map[string]any{}
		if err := json.Unmarshal(config.Spec.KubeletConfig.Raw, &settings); err != nil {
			return nil, fmt.Errorf("KubeletConfig %s: %w", item.GetName(), err)
		}
		maps.Copy(all, settings)
	}
	return all, nil
}

// withKubeletSettings returns the configuration with settings merged into the kubelet's file; unchanged without
// settings.
func withKubeletSettings(base *unstructured.Unstructured, settings map[string]any) (*unstructured.Unstructured, error) {
	if len(settings) == 0 {
		return base, nil
	}
	rendered := base.DeepCopy()
	files, _, err := unstructured.NestedSlice(rendered.Object, "spec", "config", "storage", "files")
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(files, func(file any) bool {
		entry, ok := file.(map[string]any)
		return ok && entry["path"] == kubeletConfigAt
	})
	if at < 0 {
		return nil, errors.New("the workers' configuration has no " + kubeletConfigAt)
	}
	file, _ := files[at].(map[string]any) // the index was found by this type
	source, _, _ := unstructured.NestedString(file, "contents", "source")
	content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(source, dataURLBase64))
	if err != nil {
		return nil, fmt.Errorf("%s of the workers: %w", kubeletConfigAt, err)
	}
	kubelet := map[string]any{}
	if err := yaml.Unmarshal(content, &kubelet); err != nil {
		return nil, fmt.Errorf("%s of the workers: %w", kubeletConfigAt, err)
	}
	maps.Copy(kubelet, settings)
	if content, err = yaml.Marshal(kubelet); err != nil {
		return nil, err
	}
	source = dataURLBase64 + base64.StdEncoding.EncodeToString(content)
	if err := unstructured.SetNestedField(file, source, "contents", "source"); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedSlice(rendered.Object, files, "spec", "config", "storage", "files"); err != nil {
		return nil, err
	}
	sum := md5.Sum(content)
	rendered.Object["metadata"] = map[string]any{
		"name": renderedPrefix + hex.EncodeToString(sum[:]), "annotations": map[string]any{renderedFrom: base.GetName()},
	}
	return rendered, nil
}

// rollOut sets the rendered configuration in the pool and, unless the pool is paused, reports all workers as
// updated.
func (s *simulator) rollOut(ctx context.Context, pool *machineconfigv1.MachineConfigPool, name string) error {
	if pool.Spec.Configuration.Name != name {
		change := map[string]any{"spec": map[string]any{"configuration": map[string]any{"name": name}}}
		if err := s.patchObject(ctx, poolResource, workerPool, change); err != nil {
			return err
		}
	}
	updated, message := poolUpdatedTrue, "All nodes are updated with MachineConfig "+name
	if pool.Spec.Paused && pool.Status.Configuration.Name != name {
		updated, message = poolUpdatedFalse, ""
	} else if pool.Status.Configuration.Name == name {
		return nil
	}
	status := map[string]any{"conditions": []any{map[string]any{
		"type": "Updated", "status": updated, "reason": "", "message": message, "lastTransitionTime": currentTimestamp(),
	}}}
	if updated == poolUpdatedTrue {
		status["configuration"] = map[string]any{"name": name}
	} else if slices.ContainsFunc(pool.Status.Conditions, func(c machineconfigv1.MachineConfigPoolCondition) bool {
		return c.Type == machineconfigv1.MachineConfigPoolUpdated && c.Status == poolUpdatedFalse
	}) {
		return nil
	}
	return s.patchObject(ctx, poolResource, workerPool, map[string]any{"status": status}, "status")
}
