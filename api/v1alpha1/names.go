package v1alpha1

// Labels of Machines, under the names that the guides give them.
const (
	// LabelMachineOSID on a Machine tells the operating system of its image; the operator is for those of MachineOSIDWindows.
	LabelMachineOSID = "machine.openshift.io/os-id"
	// MachineOSIDWindows is the value of LabelMachineOSID on Windows Machines.
	MachineOSIDWindows = "Windows"
	// LabelIgnore on a Machine, set to "true", makes the operator leave it alone.
	LabelIgnore = "windowsmachineconfig.openshift.io/ignore"
	// MachineNamespace is where the Machine API has its Machines.
	MachineNamespace = "openshift-machine-api"
)

// Labels and annotations on Nodes and WindowsInstances, under the names that existing clusters use.
const (
	// LabelSource on a WindowsInstance is "Machine" or "ConfigMap".
	LabelSource = "windowsmachineconfig.openshift.io/source"
	// LabelBYOH on a Node marks a host from the ConfigMap windows-instances.
	LabelBYOH = "windowsmachineconfig.openshift.io/byoh"
	// LabelOSID on a Node is "Windows".
	LabelOSID = "node.openshift.io/os_id"
	// LabelWorker on a Node makes it a worker.
	LabelWorker = "node-role.kubernetes.io/worker"

	// AnnotationVersion on a Node is the operator version that finished its configuration.
	AnnotationVersion = "windowsmachineconfig.openshift.io/version"
	// AnnotationPubKeyHash on a Node identifies the SSH public key that it was configured with.
	AnnotationPubKeyHash = "windowsmachineconfig.openshift.io/pub-key-hash"
	// AnnotationInstance on a Node binds it to its WindowsInstance ("name/uid").
	AnnotationInstance = "windowsmachineconfig.openshift.io/instance"
	// AnnotationHostKey and AnnotationHostKeyType on a Node are the pinned SSH host key (base64) and its type.
	AnnotationHostKey     = "windowsmachineconfig.openshift.io/ssh-host-key"
	AnnotationHostKeyType = "windowsmachineconfig.openshift.io/ssh-host-key-type"
	// AnnotationCordoned on a Node says that the operator made it unschedulable, and so may make it schedulable again.
	AnnotationCordoned = "windowsmachineconfig.openshift.io/cordoned"

	// AnnotationAcceptHostKey on a WindowsInstance is the fingerprint of a changed host key that an administrator accepts.
	AnnotationAcceptHostKey = "windowsmachineconfig.openshift.io/accept-host-key"
	// AnnotationForgetHost on a WindowsInstance, set to "true", lets a removal go on without a host that is gone for good.
	AnnotationForgetHost = "windowsmachineconfig.openshift.io/forget-host"

	// AnnotationPodSubnet on a Node is the pod subnet that OVN-Kubernetes' hybrid overlay assigned.
	AnnotationPodSubnet = "k8s.ovn.org/hybrid-overlay-node-subnet"

	// TaintNotReady keeps pods off a node until it was proven to work.
	TaintNotReady = "windowsmachineconfig.openshift.io/not-ready"
	// TaintWindows keeps pods without a toleration for Windows off the node.
	TaintWindows = "os"
)

// Values of LabelSource.
const (
	SourceMachine   = "Machine"
	SourceConfigMap = "ConfigMap"
)
