package machinesets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/machineset"
)

// fromCluster generates the MachineSet with the values of the cluster, and returns a client for the cluster.
func (c *command) fromCluster(ctx context.Context) (client.Client, *machinev1beta1.MachineSet, error) {
	cluster, err := c.newStrictClient()
	if err != nil {
		return nil, nil, err
	}
	if err := c.readCluster(ctx, cluster); err != nil {
		return nil, nil, err
	}
	if err := c.fillInImage(ctx); err != nil {
		return nil, nil, err
	}
	set, err := machineset.Generate(c.options)
	return cluster, set, err
}

func (c *command) generateMachineSet(ctx context.Context) error {
	_, set, err := c.fromCluster(ctx)
	if err != nil {
		return err
	}
	data, err := machineset.Render(set)
	if err != nil {
		return err
	}
	if c.file == "" {
		_, err := c.Out.Write(data)
		return err
	}
	if err := os.WriteFile(c.file, data, 0o644); err != nil { //nolint:gosec // G306: it holds no secret
		return fmt.Errorf("write the MachineSet: %w", err)
	}
	fmt.Fprintf(c.Out, "wrote %s: MachineSet %s, Windows Server %s. Create it with: oc create -f %s\n", c.file, set.Name,
		c.options.Version, c.file)
	return nil
}

// readCluster adds the values of the cluster to the options.
func (c *command) readCluster(ctx context.Context, reader client.Reader) error {
	infrastructure := &configv1.Infrastructure{}
	if err := reader.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return fmt.Errorf("read Infrastructure cluster: %w. Each OpenShift cluster has this object: check the context of the kubeconfig", err)
	}
	if infrastructure.Status.InfrastructureName == "" || infrastructure.Status.PlatformStatus == nil {
		return errors.New("read Infrastructure cluster: status.infrastructureName or status.platformStatus is missing; the installer sets them")
	}
	c.options.InfrastructureName = infrastructure.Status.InfrastructureName
	c.options.Platform = infrastructure.Status.PlatformStatus.Type
	if err := machineset.CheckSupported(c.options.Platform, c.options.Version); err != nil {
		return err
	}
	sets := &machinev1beta1.MachineSetList{}
	if err := reader.List(ctx, sets, client.InNamespace(v1alpha1.MachineNamespace)); err != nil {
		return fmt.Errorf("list the MachineSets of %s: %w", v1alpha1.MachineNamespace, err)
	}
	var err error
	c.options.Worker, err = chooseWorker(sets.Items, c.from, c.options)
	return err
}

// chooseWorker returns the provider spec of the MachineSet for Linux workers to copy values from. It prefers
// the named MachineSet, then the first by name in the zone, then the first by name. The result is nil without
// such a MachineSet.
func chooseWorker(sets []machinev1beta1.MachineSet, from string, o machineset.Options) (*runtime.RawExtension, error) {
	workers := map[string]*runtime.RawExtension{}
	for _, set := range sets {
		labels := set.Spec.Template.Labels
		if labels[machineset.LabelMachineRole] == machineset.RoleWorker &&
			labels[v1alpha1.LabelMachineOSID] != v1alpha1.MachineOSIDWindows {
			workers[set.Name] = set.Spec.Template.Spec.ProviderSpec.Value
		}
	}
	names := slices.Sorted(maps.Keys(workers))
	if from != "" && !slices.Contains(names, from) {
		return nil, fmt.Errorf("%q is not a MachineSet for Linux workers. These are: %s", from, strings.Join(names, ", "))
	}
	if from != "" || len(names) == 0 {
		return workers[from], nil
	}
	for _, name := range names {
		zone, err := machineset.WorkerZone(o.Platform, workers[name])
		if err == nil && o.Zone != "" && zone == o.Zone {
			return workers[name], nil
		}
	}
	return workers[names[0]], nil
}

// fillInImage finds the newest image of Amazon: images there have no stable names.
func (c *command) fillInImage(ctx context.Context) error {
	o := &c.options
	if o.Platform != configv1.AWSPlatformType || o.Image != "" {
		return nil
	}
	region, err := machineset.WorkerRegion(o.Worker)
	if err != nil {
		return err
	}
	image, name, err := c.findAMI(ctx, region, o.Version)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOut, "image %s (%s), Amazon's newest; choose another with --image\n", image, name)
	o.Image = image
	return nil
}

func (c *command) apply(ctx context.Context) error {
	cluster, set, err := c.fromCluster(ctx)
	if err != nil {
		return err
	}
	err = cluster.Create(ctx, set)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("MachineSet %s exists already and was not changed. Scale it with oc scale machineset %s -n %s --replicas=<number>, or create another one with --name",
			set.Name, set.Name, set.Namespace)
	}
	if err != nil {
		return fmt.Errorf("create MachineSet %s: %w", set.Name, err)
	}
	fmt.Fprintf(c.Out, "created MachineSet %s. Watch it: oc get machineset,machine -n %s\n", set.Name, set.Namespace)
	return nil
}

// deleteMachineSet deletes a MachineSet for Windows, and refuses any other.
func (c *command) deleteMachineSet(ctx context.Context) error {
	cluster, err := c.newStrictClient()
	if err != nil {
		return err
	}
	if err := c.readCluster(ctx, cluster); err != nil {
		return err
	}
	name, err := machineset.Name(c.options)
	if err != nil {
		return err
	}
	set := &machinev1beta1.MachineSet{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: name}, set); err != nil {
		return fmt.Errorf("find the MachineSet to delete: %w", err)
	}
	if set.Spec.Template.Labels[v1alpha1.LabelMachineOSID] != v1alpha1.MachineOSIDWindows {
		return fmt.Errorf("MachineSet %s is not for Windows: its Machines have no label %s=%s. It was not deleted",
			name, v1alpha1.LabelMachineOSID, v1alpha1.MachineOSIDWindows)
	}
	if !c.yes {
		question := fmt.Sprintf("MachineSet %s is deleted, and its Machines are drained and deleted with it.", name)
		if err := c.Confirm(question); err != nil {
			return err
		}
	}
	preconditions := client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion}
	if err := cluster.Delete(ctx, set, preconditions,
		client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete MachineSet %s: %w", name, err)
	}
	fmt.Fprintf(c.Out, "deleted MachineSet %s; the Machine API drains and deletes its Machines\n", name)
	return nil
}
