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
	// AnnotationDrained on a Node is DrainIncomplete from its cordon on, and the value of AnnotationCordoned from the end of its drain on. It is
	// removed with AnnotationCordoned. Without it, it is not known whether the node was drained.
	AnnotationDrained = "windowsmachineconfig.openshift.io/drained"

	// AnnotationAcceptHostKey on a WindowsInstance is the fingerprint of a changed host key that an administrator accepts.
	AnnotationAcceptHostKey = "windowsmachineconfig.openshift.io/accept-host-key"
	// AnnotationExpectedHostKey on a Machine or a WindowsInstance are the fingerprints of which the host must show one at the first contact, as
	// ssh-keygen -l prints them, separated by commas.
	AnnotationExpectedHostKey = "windowsmachineconfig.openshift.io/expected-host-key"
	// AnnotationEntryFault on a WindowsInstance is the fault of its entry in the ConfigMap windows-instances. It is absent if the entry is valid, or
	// if the instance keeps the user name of an earlier entry.
	AnnotationEntryFault = "windowsmachineconfig.openshift.io/entry-fault"
	// AnnotationForgetHost on a WindowsInstance, set to "true", lets a removal go on without a host that is gone for good.
	AnnotationForgetHost = "windowsmachineconfig.openshift.io/forget-host"

	// AnnotationRebootRequired on a Node asks for a restart of its host, whatever its value. The operator drains the node, restarts the host,
	// and takes the annotation away.
	AnnotationRebootRequired = "windowsmachineconfig.openshift.io/reboot-required"
	// AnnotationRetry on a WindowsInstance, when it is added or its value changes, has a change tried again that has failed. The operator takes
	// it away.
	AnnotationRetry = "windowsmachineconfig.openshift.io/retry"
	// AnnotationUpgradeStrategy on a MachineSet is the UpgradeStrategy of its Machines.
	AnnotationUpgradeStrategy = "windowsmachineconfig.openshift.io/upgrade-strategy"
	// AnnotationExcludeDrain on a Machine leaves out the drain of its node; its value does not matter. It is the Machine API's.
	AnnotationExcludeDrain = "machine.openshift.io/exclude-node-draining"

	// AnnotationDesiredVersion and AnnotationUsername on a Node come from operators before version 12, as does LabelUpgrading.
	AnnotationDesiredVersion = "windowsmachineconfig.openshift.io/desired-version"
	AnnotationUsername       = "windowsmachineconfig.openshift.io/username"
	// AnnotationTakenOverFrom on a Node is the version of the operator before version 12 that has configured its host, until this operator has.
	// It tells such a host, which has nothing of ours yet, from one that another version of ours has configured.
	AnnotationTakenOverFrom = "windowsmachineconfig.openshift.io/adopted-from"
	// LabelUpgrading on a Node is the lock of operators before version 12.
	LabelUpgrading = "windowsmachineconfig.openshift.io/upgrading"

	// AnnotationPodSubnet on a Node is the pod subnet that OVN-Kubernetes' hybrid overlay assigned.
	AnnotationPodSubnet = "k8s.ovn.org/hybrid-overlay-node-subnet"

	// TaintNotReady is the start-up taint: it keeps pods off a Node until the operator has verified it. The cluster autoscaler
	// recognizes start-up taints by this prefix. It counts a Node with any other taint as ready, and adds a second Machine for
	// the same pods.
	TaintNotReady = "startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready"
	// TaintNotReadyFormer is the start-up taint of Nodes that registered before TaintNotReady had its prefix.
	TaintNotReadyFormer = "windowsmachineconfig.openshift.io/not-ready"
	// TaintWindows keeps pods without a toleration for Windows off the node.
	TaintWindows = "os"
	// TaintUninitialized is on a Node that the cloud controller manager has not initialized. It is Kubernetes'.
	TaintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// DrainIncomplete is the value of AnnotationDrained before the pods of the node have left.
const DrainIncomplete = "false"

// OperatorName is the name of the operator's Deployment and ServiceAccount, and the manager of the objects that it owns.
const OperatorName = "windows-machine-config-operator"

// OperatorLease names the Lease in the operator's namespace by which one operator of several works.
const OperatorLease = OperatorName

// LabelManagedBy has the value OperatorName on the objects that the operator owns. The key is Kubernetes'.
const LabelManagedBy = "app.kubernetes.io/managed-by"

// Values of LabelSource.
const (
	SourceMachine   = "Machine"
	SourceConfigMap = "ConfigMap"
)
