package fakeolm

import (
	"context"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of cluster-scoped objects of a ClusterServiceVersion, which cannot have an owner reference to it.
const (
	ownerLabel     = "olm.owner"
	namespaceLabel = "olm.owner.namespace"
)

// syncVersions performs the next step for each ClusterServiceVersion of a namespace.
func (p *Player) syncVersions(ctx context.Context, namespace string) error {
	group, err := p.operatorGroup(ctx, namespace)
	if err != nil || group == nil {
		return err
	}
	installed, err := p.installedVersion(ctx, namespace)
	if err != nil {
		return err
	}
	var list v1alpha1.ClusterServiceVersionList
	if err := p.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		csv := &list.Items[i]
		if csv.Status.Phase == v1alpha1.CSVPhaseSucceeded {
			continue
		}
		if reason := InstallBlocker(csv.Spec.InstallModes, group); reason != "" {
			if err := p.setVersionPhase(ctx, csv, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonUnsupportedOperatorGroup, reason); err != nil {
				return err
			}
			continue
		}
		if err := p.installVersion(ctx, csv, installed); err != nil {
			return fmt.Errorf("ClusterServiceVersion %s: %w", csv.Name, err)
		}
	}
	return nil
}

// installVersion installs a ClusterServiceVersion and replaces the installed one, if any.
func (p *Player) installVersion(ctx context.Context, csv, installed *v1alpha1.ClusterServiceVersion) error {
	if installed != nil {
		reason, err := p.readUpgradeBlocker(ctx, installed)
		if err != nil {
			return err
		}
		if reason != "" {
			return p.setVersionPhase(ctx, csv, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonOperatorConditionNotUpgradeable, reason)
		}
	}
	objects, err := p.ownedObjects(csv)
	if err != nil {
		return err
	}
	if err := p.Install(ctx, csv.Namespace, objects); err != nil {
		return err
	}
	if err := p.setVersionPhase(ctx, csv, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful,
		"install strategy completed with no errors"); err != nil || installed == nil {
		return err
	}
	return client.IgnoreNotFound(p.client.Delete(ctx, installed))
}

func (p *Player) readUpgradeBlocker(ctx context.Context, installed *v1alpha1.ClusterServiceVersion) (string, error) {
	condition := &operatorsv2.OperatorCondition{}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(installed), condition); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return UpgradeBlocker(condition), nil
}

// ownedObjects returns the objects that OLM creates for a ClusterServiceVersion, with owner labels or references.
func (p *Player) ownedObjects(csv *v1alpha1.ClusterServiceVersion) ([]*unstructured.Unstructured, error) {
	bundle := p.Bundles[csv.Name]
	if bundle == nil {
		return nil, fmt.Errorf("there is no bundle of %s", csv.Name)
	}
	objects, err := bundle.Objects(csv.Namespace)
	if err != nil {
		return nil, err
	}
	owner := *metav1.NewControllerRef(csv, v1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion"))
	for _, object := range objects {
		if object.GetNamespace() != "" {
			object.SetOwnerReferences([]metav1.OwnerReference{owner})
			continue
		}
		object.SetLabels(map[string]string{ownerLabel: csv.Name, namespaceLabel: csv.Namespace})
	}
	return objects, nil
}

func (p *Player) setVersionPhase(ctx context.Context, csv *v1alpha1.ClusterServiceVersion, phase v1alpha1.ClusterServiceVersionPhase,
	reason v1alpha1.ConditionReason, message string) error {
	if csv.Status.Phase == phase && csv.Status.Reason == reason && csv.Status.Message == message {
		return nil
	}
	now := metav1.Now()
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message = phase, reason, message
	csv.Status.LastUpdateTime, csv.Status.LastTransitionTime = &now, &now
	return p.client.Status().Update(ctx, csv)
}

// collectGarbage deletes the cluster-scoped objects of deleted ClusterServiceVersions. The garbage collector deletes
// objects in the namespace.
func (p *Player) collectGarbage(ctx context.Context, namespace string) error {
	var versions v1alpha1.ClusterServiceVersionList
	if err := p.client.List(ctx, &versions, client.InNamespace(namespace)); err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, csv := range versions.Items {
		alive[csv.Name] = true
	}
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		if err := p.client.List(ctx, list, client.MatchingLabels{namespaceLabel: namespace}); err != nil {
			return err
		}
		for _, object := range itemsOf(list) {
			if alive[object.GetLabels()[ownerLabel]] {
				continue
			}
			if err := client.IgnoreNotFound(p.client.Delete(ctx, object)); err != nil {
				return err
			}
		}
	}
	return nil
}

func itemsOf(list client.ObjectList) (objects []client.Object) {
	switch l := list.(type) {
	case *rbacv1.ClusterRoleList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *rbacv1.ClusterRoleBindingList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	}
	return objects
}
