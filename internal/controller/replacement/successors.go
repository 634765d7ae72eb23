package replacement

import (
	"encoding/json"
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// successors judges the hosts of the Machines that MachineSets create next.
type successors struct {
	line    support.ReleaseLine
	cluster nodespec.Cluster
	// refusal is the reason why the cluster can have no further Windows node; empty if there is none.
	refusal string
}

// readSuccessors judges the cluster by its facts, and reports whether the facts are known.
func (r *Reconciler) readSuccessors() (successors, bool) {
	facts, err := r.Cluster()
	var fault *cluster.Error
	switch {
	case errors.As(err, &fault):
		return successors{line: r.Line, refusal: sanitize.Sentence("The cluster's configuration cannot be used: " + err.Error())}, true
	case err != nil:
		return successors{}, false // not read yet
	}
	s := successors{line: r.Line, cluster: facts}
	if decision := r.Line.SupportCluster(facts); !decision.Allowed {
		s.refusal = decision.Message
	}
	return s, true
}

// recordSuccessor records the properties of a Machine's successor that the host of the Machine shows. The node of a
// Machine reports the current build. A host that did not become a node was read by the instance controller.
func (s successors) recordSuccessor(m *replacementpolicy.Machine, machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, node *corev1.Node) {
	m.Image, m.Created = imageOf(machine.Spec.ProviderSpec.Value), machine.CreationTimestamp.Time
	if s.refusal != "" {
		return // applies to every Machine
	}
	if decision := support.Machine(s.cluster, machine.Name); !decision.Allowed {
		m.NameRefusal = decision.Message
	}
	product, build := "", ""
	if instance != nil && instance.Status.Host != nil {
		product, build = instance.Status.Host.Product, instance.Status.Host.Build
	}
	if node != nil && support.IsBuild(node.Status.NodeInfo.KernelVersion) {
		product, build = node.Status.NodeInfo.OSImage, node.Status.NodeInfo.KernelVersion
	}
	if !support.IsBuild(build) {
		return
	}
	m.Build = build
	if decision := s.line.SupportBuild(product, build, s.cluster); !decision.Allowed {
		m.BuildRefusal = decision.Message
	}
}

// imageOf returns a text that identifies the image in a providerSpec: the AMI on AWS, the image on Azure and
// Nutanix, the images of the disks on GCP, the template on vSphere. If none of these fields exists, it returns the
// complete providerSpec.
func imageOf(spec *runtime.RawExtension) string {
	if spec == nil {
		return ""
	}
	var whole any
	if json.Unmarshal(spec.Raw, &whole) != nil {
		return string(spec.Raw)
	}
	fields, _ := whole.(map[string]any)
	image := map[string]any{}
	for _, name := range []string{"ami", "image", "template", "snapshot"} {
		if value, found := fields[name]; found {
			image[name] = value
		}
	}
	disks, _ := fields["disks"].([]any)
	for _, disk := range disks {
		if disk, ok := disk.(map[string]any); ok && disk["image"] != nil {
			images, _ := image["disks"].([]any)
			image["disks"] = append(images, disk["image"])
		}
	}
	if len(image) > 0 {
		whole = image
	}
	text, _ := json.Marshal(whole) // with sorted keys
	return string(text)
}
