package v1alpha1

// Labels of Machines, with the names in the guides.
const (
	// LabelMachineOSID on a Machine is the operating system of its image; the operator manages Machines with MachineOSIDWindows.
	LabelMachineOSID = "machine.openshift.io/os-id"
	// MachineOSIDWindows is the value of LabelMachineOSID on Windows Machines.
	MachineOSIDWindows = "Windows"
	// LabelIgnore on a Machine, set to "true", makes the host unmanaged.
	LabelIgnore = "windowsmachineconfig.openshift.io/ignore"
	// MachineNamespace is the namespace of Machines.
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
	// AnnotationPubKeyHash on a Node identifies the configured SSH public key of its host.
	AnnotationPubKeyHash = "windowsmachineconfig.openshift.io/pub-key-hash"
	// AnnotationInstance on a Node binds it to its WindowsInstance ("name/uid").
	AnnotationInstance = "windowsmachineconfig.openshift.io/instance"
	// AnnotationHostKey and AnnotationHostKeyType on a Node are the pinned SSH host key (base64) and its type.
	AnnotationHostKey     = "windowsmachineconfig.openshift.io/ssh-host-key"
	AnnotationHostKeyType = "windowsmachineconfig.openshift.io/ssh-host-key-type"
	// AnnotationCordoned on a Node records that the operator cordoned the Node, and so may uncordon it.
	AnnotationCordoned = "windowsmachineconfig.openshift.io/cordoned"
	// AnnotationDrained on a Node is DrainIncomplete after the cordon, and the value of AnnotationCordoned after the drain. It is removed with
	// AnnotationCordoned. Without the annotation, the state of the drain is unknown.
	AnnotationDrained = "windowsmachineconfig.openshift.io/drained"

	// AnnotationAcceptHostKey on a WindowsInstance is the fingerprint of a changed host key that an administrator accepts.
	AnnotationAcceptHostKey = "windowsmachineconfig.openshift.io/accept-host-key"
	// AnnotationExpectedHostKey on a Machine or a WindowsInstance lists the expected fingerprints for the first contact with the host, as
	// printed by ssh-keygen -l, separated by commas.
	AnnotationExpectedHostKey = "windowsmachineconfig.openshift.io/expected-host-key"
	// AnnotationEntryFault on a WindowsInstance is the fault of its entry in the ConfigMap windows-instances. It is absent if the entry is valid, or
	// if the instance keeps the user name of an earlier entry.
	AnnotationEntryFault = "windowsmachineconfig.openshift.io/entry-fault"
	// AnnotationForgetHost on a WindowsInstance, set to "true", continues a removal without the host, which no longer exists.
	AnnotationForgetHost = "windowsmachineconfig.openshift.io/forget-host"

	// AnnotationRebootRequired on a Node requests a restart of its host; the value does not matter. The operator drains the node, restarts the
	// host, and removes the annotation.
	AnnotationRebootRequired = "windowsmachineconfig.openshift.io/reboot-required"
	// AnnotationRetry on a WindowsInstance requests a retry of a failed change. The operator removes the annotation.
	AnnotationRetry = "windowsmachineconfig.openshift.io/retry"
	// AnnotationUpgradeStrategy on a MachineSet is the UpgradeStrategy of its Machines.
	AnnotationUpgradeStrategy = "windowsmachineconfig.openshift.io/upgrade-strategy"
	// AnnotationExcludeDrain on a Machine excludes its node from draining; the value does not matter. The annotation belongs to the Machine API.
	AnnotationExcludeDrain = "machine.openshift.io/exclude-node-draining"

	// AnnotationDesiredVersion and AnnotationUsername on a Node come from the legacy operator (before version 12), as does LabelUpgrading.
	AnnotationDesiredVersion = "windowsmachineconfig.openshift.io/desired-version"
	AnnotationUsername       = "windowsmachineconfig.openshift.io/username"
	// AnnotationTakenOverFrom on a Node is the version of the legacy operator that configured its host. The annotation is removed when this
	// operator has configured the host. It distinguishes such a host from a host that another version of this operator configured.
	AnnotationTakenOverFrom = "windowsmachineconfig.openshift.io/adopted-from"
	// LabelUpgrading on a Node is the upgrade lock of the legacy operator.
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
	// TaintUninitialized is on a Node that the cloud controller manager has not initialized. The taint belongs to Kubernetes.
	TaintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// DrainIncomplete is the value of AnnotationDrained before the pods of the node are evicted.
const DrainIncomplete = "false"

// OperatorName is the name of the operator's Deployment and ServiceAccount, and the manager of the objects that it owns.
const OperatorName = "windows-machine-config-operator"

// OperatorLease is the name of the Lease for leader election in the operator's namespace.
const OperatorLease = OperatorName

// LabelManagedBy has the value OperatorName on the objects that the operator owns. The key is Kubernetes'.
const LabelManagedBy = "app.kubernetes.io/managed-by"

// Values of LabelSource.
const (
	SourceMachine   = "Machine"
	SourceConfigMap = "ConfigMap"
)
