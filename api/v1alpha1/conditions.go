package v1alpha1

// Condition types of a WindowsInstance. Each is True, False or Unknown, never absent once the instance was seen.
const (
	// ConditionReachable: the host answers over SSH with the pinned host key and accepts the operator's key.
	ConditionReachable = "Reachable"
	// ConditionSupported: Windows version, network and name allow this host to be a node of this cluster.
	ConditionSupported = "Supported"
	// ConditionPrepared: Windows features and host name are configured.
	ConditionPrepared = "Prepared"
	// ConditionInstalled: payload, files and services are on the host.
	ConditionInstalled = "Installed"
	// ConditionJoined: the kubelet has its certificate and the Node object is there.
	ConditionJoined = "Joined"
	// ConditionNetworkReady: the pod network was assigned and set up.
	ConditionNetworkReady = "NetworkReady"
	// ConditionReady: the node was checked to work, and takes pods.
	ConditionReady = "Ready"
	// ConditionUpToDate: the host is what this version of the operator wants it to be.
	ConditionUpToDate = "UpToDate"
)

// Reasons of conditions. docs/conditions.md lists each with its meaning and remedy, together with those of packages remote and verb; a
// test compares that list with the code.
const (
	ReasonSucceeded          = "Succeeded"
	ReasonReady              = "Ready" // the summary of an instance that nothing stands in the way of; no condition has it
	ReasonInProgress         = "InProgress"
	ReasonWaiting            = "Waiting"
	ReasonPaused             = "Paused"
	ReasonRemoving           = "Removing"
	ReasonDependencyNotReady = "DependencyNotReady" // an earlier condition must be true first

	// Input.
	ReasonInvalidEntry                = "InvalidEntry"      // the entry in windows-instances is malformed
	ReasonPrivateKeyMissing           = "PrivateKeyMissing" // Secret cloud-private-key is not there
	ReasonPrivateKeyInvalid           = "PrivateKeyInvalid" // Secret cloud-private-key holds no usable private key
	ReasonClusterConfigurationInvalid = "ClusterConfigurationInvalid"
	ReasonAPIRequestFailed            = "APIRequestFailed"   // the API server refused a request of the operator, or did not answer
	ReasonPayloadUnavailable          = "PayloadUnavailable" // the operator cannot read its own payload

	// Machines.
	ReasonMachineDeleting    = "MachineDeleting"    // the Machine API deletes the Machine
	ReasonMachineFailed      = "MachineFailed"      // the Machine is in phase Failed
	ReasonMachineIgnored     = "MachineIgnored"     // the Machine has the label that makes the operator leave it alone, or is no Windows Machine any more
	ReasonUserDataInProgress = "UserDataInProgress" // the host does not accept the key yet: its user data is still at work

	// Support.
	ReasonClusterVersionUnsupported = "ClusterVersionUnsupported"
	ReasonPlatformUnsupported       = "PlatformUnsupported"
	ReasonMachineNameTooLong        = "MachineNameTooLong"
	ReasonNetworkUnsupported        = "NetworkUnsupported"
	ReasonArchitectureUnsupported   = "ArchitectureUnsupported"
	ReasonWindowsVersionUnsupported = "WindowsVersionUnsupported"
	ReasonVXLANPortUnsupported      = "VXLANPortUnsupported"
	ReasonFirewallPolicyUnsupported = "FirewallPolicyUnsupported" // a group policy would cut the host off from the operator
	ReasonClockSkew                 = "ClockSkew"                 // the host's clock is too far from the operator's

	// Identity.
	ReasonNameConflict              = "NameConflict"
	ReasonDuplicateHost             = "DuplicateHost"
	ReasonHostMismatch              = "HostMismatch"
	ReasonHostNameInvalid           = "HostNameInvalid"
	ReasonCloudNameUnknown          = "CloudNameUnknown" // the cloud's metadata service does not tell the machine's name
	ReasonCertificateRequestRefused = "CertificateRequestRefused"
	ReasonCertificateExpired        = "CertificateExpired"

	// The way from the host to the cluster.
	ReasonAPIServerUnreachable = "APIServerUnreachable" // the host cannot resolve or reach the API server's internal name

	// Disruption of nodes in service: why a change waits.
	ReasonDisruptionsPaused        = "DisruptionsPaused"        // the WindowsDisruptionPolicy, or its entry for the pool, is paused
	ReasonDisruptionPolicyInvalid  = "DisruptionPolicyInvalid"  // the WindowsDisruptionPolicy cannot be followed
	ReasonOutsideMaintenanceWindow = "OutsideMaintenanceWindow" // no maintenance window is open
	ReasonMaxUnavailableReached    = "MaxUnavailableReached"    // maxUnavailable of the policy, or of the pool
	ReasonDisruptionInProgress     = "DisruptionInProgress"     // another disruption must finish first
	ReasonCanarySoaking            = "CanarySoaking"            // the first node has the version, and must stay Ready for some time
	ReasonCanaryFailed             = "CanaryFailed"             // the first node has failed with the version
	ReasonStoppedOnFailure         = "StoppedOnFailure"         // a node has failed, and stopOnFailure is set
	ReasonLastAvailableMachine     = "LastAvailableMachine"     // the last Machine of its MachineSet that works
	ReasonReplacementPending       = "ReplacementPending"       // the Machine is to be replaced by a new one
	ReasonChangeFailed             = "ChangeFailed"             // the last change failed, and the node was brought back to what it was
	ReasonRollbackIncomplete       = "RollbackIncomplete"       // the last change failed, and so did, or was impossible, the way back
	ReasonDrainTimedOut            = "DrainTimedOut"            // pods did not leave in time; the node takes pods again

	// Progress and failure.
	ReasonRebooting            = "Rebooting"
	ReasonStepFailed           = "StepFailed"
	ReasonChecksFailed         = "ChecksFailed"
	ReasonNodeNotRegistered    = "NodeNotRegistered"
	ReasonNodeNotReady         = "NodeNotReady"
	ReasonNodeNotInitialized   = "NodeNotInitialized"
	ReasonPodSubnetNotAssigned = "PodSubnetNotAssigned"
	ReasonDrainBlocked         = "DrainBlocked"
	ReasonJobTimedOut          = "JobTimedOut" // a job on the host has reached its limit
)
