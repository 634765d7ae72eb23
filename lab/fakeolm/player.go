package fakeolm

import (
	"context"
	"errors"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Player performs the actions of OLM's controllers by Rules, one step at a time. A release becomes Succeeded
// without waiting for the Deployment, because no node of the lab runs the operator's pod.
type Player struct {
	// Install creates or updates objects.
	Install func(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error
	// Images maps image names to catalogs.
	Images map[string]*Catalog
	// Bundles maps names to releases.
	Bundles map[string]*Bundle

	client client.Client
}

// NewPlayer returns a player with the rights of a configuration. OLM has all rights.
func NewPlayer(config *rest.Config) (*Player, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), operatorsv1.AddToScheme(scheme),
		operatorsv2.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &Player{client: c, Images: map[string]*Catalog{}, Bundles: map[string]*Bundle{}}, nil
}

// Sync reads all Subscriptions, InstallPlans and ClusterServiceVersions of a namespace once and performs the
// next steps.
func (p *Player) Sync(ctx context.Context, namespace string) error {
	var subscriptions v1alpha1.SubscriptionList
	if err := p.client.List(ctx, &subscriptions, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range subscriptions.Items {
		if err := p.syncSubscription(ctx, &subscriptions.Items[i]); err != nil {
			return fmt.Errorf("sync Subscription %s: %w", subscriptions.Items[i].Name, err)
		}
	}
	var plans v1alpha1.InstallPlanList
	if err := p.client.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range plans.Items {
		if err := p.runInstallPlan(ctx, &plans.Items[i]); err != nil {
			return fmt.Errorf("sync InstallPlan %s: %w", plans.Items[i].Name, err)
		}
	}
	if err := p.syncVersions(ctx, namespace); err != nil {
		return err
	}
	return p.collectGarbage(ctx, namespace)
}

// syncSubscription creates an InstallPlan for the next release.
func (p *Player) syncSubscription(ctx context.Context, s *v1alpha1.Subscription) error {
	entries, err := p.availableReleases(ctx, s)
	if err != nil || len(entries) == 0 {
		return err
	}
	installed, err := p.installedVersion(ctx, s.Namespace)
	if err != nil {
		return err
	}
	var name string
	bundle := &Bundle{Version: &v1alpha1.ClusterServiceVersion{}}
	if installed != nil {
		name, bundle = installed.Name, p.Bundles[installed.Name]
	}
	next, err := NextRelease(entries, name, bundle.Version.Spec.Version.Version)
	if err != nil {
		return err
	}
	if name != "" && s.Status.InstalledCSV != name || next != "" && s.Status.CurrentCSV != next {
		s.Status.InstalledCSV, s.Status.LastUpdated = name, metav1.Now()
		if next != "" {
			s.Status.CurrentCSV = next
		}
		if err := p.client.Status().Update(ctx, s); err != nil {
			return err
		}
	}
	if next == "" {
		return nil
	}
	plan := &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "install-" + next,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1alpha1.SchemeGroupVersion.WithKind("Subscription"))}},
		Spec: v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{next}, Approval: s.Spec.InstallPlanApproval,
			Approved: s.Spec.InstallPlanApproval != v1alpha1.ApprovalManual},
	}
	return client.IgnoreAlreadyExists(p.client.Create(ctx, plan))
}

// availableReleases returns the releases available to a Subscription; none if the CatalogSource does not exist.
func (p *Player) availableReleases(ctx context.Context, s *v1alpha1.Subscription) ([]Entry, error) {
	source := &v1alpha1.CatalogSource{}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: s.Spec.CatalogSourceNamespace, Name: s.Spec.CatalogSource}, source)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	catalog := p.Images[source.Spec.Image]
	if catalog == nil {
		return nil, nil
	}
	return catalog.Channel(s.Spec.Package, s.Spec.Channel), nil
}

// installedVersion returns the installed release; nil for none.
func (p *Player) installedVersion(ctx context.Context, namespace string) (*v1alpha1.ClusterServiceVersion, error) {
	var versions v1alpha1.ClusterServiceVersionList
	if err := p.client.List(ctx, &versions, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range versions.Items {
		if versions.Items[i].Status.Phase == v1alpha1.CSVPhaseSucceeded {
			return &versions.Items[i], nil
		}
	}
	return nil, nil
}

// runInstallPlan creates the ClusterServiceVersions of an approved InstallPlan, with the cluster-wide objects of their
// bundles.
func (p *Player) runInstallPlan(ctx context.Context, plan *v1alpha1.InstallPlan) error {
	switch {
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete || plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return nil
	case !plan.Spec.Approved:
		return p.setPlanPhase(ctx, plan, v1alpha1.InstallPlanPhaseRequiresApproval, "")
	}
	group, err := p.operatorGroup(ctx, plan.Namespace)
	if err != nil {
		return err
	}
	if group == nil {
		return p.setPlanPhase(ctx, plan, v1alpha1.InstallPlanPhaseFailed, "the namespace must have one OperatorGroup")
	}
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		bundle := p.Bundles[name]
		if bundle == nil {
			return fmt.Errorf("there is no bundle of %s", name)
		}
		csv, err := bundle.ClusterServiceVersion(plan.Namespace)
		if err != nil {
			return err
		}
		if err := p.Install(ctx, plan.Namespace, append(bundle.ClusterWide(), csv)); err != nil {
			return err
		}
	}
	return p.setPlanPhase(ctx, plan, v1alpha1.InstallPlanPhaseComplete, "")
}

func (p *Player) setPlanPhase(ctx context.Context, plan *v1alpha1.InstallPlan, phase v1alpha1.InstallPlanPhase,
	message string) error {
	if plan.Status.Phase == phase {
		return nil
	}
	plan.Status.Phase, plan.Status.Message, plan.Status.CatalogSources = phase, message, []string{}
	return p.client.Status().Update(ctx, plan)
}

// operatorGroup returns the only OperatorGroup of a namespace; nil if there is none or more than one.
func (p *Player) operatorGroup(ctx context.Context, namespace string) (*operatorsv1.OperatorGroup, error) {
	var groups operatorsv1.OperatorGroupList
	if err := p.client.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if len(groups.Items) != 1 {
		return nil, nil
	}
	return &groups.Items[0], nil
}
