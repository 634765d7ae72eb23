package v1alpha1

// Condition types of a WindowsInstance. Each is True, False or Unknown, never absent once the instance was seen.
const (
	// ConditionReachable: the host presents the pinned host key over SSH and accepts the operator's key.
	ConditionReachable = "Reachable"
	// ConditionSupported: Windows version, network and name allow this host to be a node of this cluster.
	ConditionSupported = "Supported"
	// ConditionPrepared: Windows features and host name are configured.
	ConditionPrepared = "Prepared"
	// ConditionInstalled: payload, files and services are installed.
	ConditionInstalled = "Installed"
	// ConditionJoined: the kubelet has its certificate and the Node object exists.
	ConditionJoined = "Joined"
	// ConditionNetworkReady: the pod network is assigned and configured.
	ConditionNetworkReady = "NetworkReady"
	// ConditionReady: the node is verified and accepts pods.
	ConditionReady = "Ready"
	// ConditionUpToDate: the host matches the configuration of this operator version.
	ConditionUpToDate = "UpToDate"
)

// Reasons of conditions. docs/conditions.md lists each with its meaning and remedy, together with the reasons of packages remote and agentapi; a
// test compares that list with the code.
const (
	ReasonSucceeded          = "Succeeded"
	ReasonReady              = "Ready" // the summary of an instance without a blocking condition; no condition has it
	ReasonInProgress         = "InProgress"
	ReasonWaiting            = "Waiting"
	ReasonPaused             = "Paused"
	ReasonRemoving           = "Removing"
	ReasonDependencyNotReady = "DependencyNotReady" // an earlier condition must be true first

	// Input.
	ReasonInvalidEntry                = "InvalidEntry"      // the entry in windows-instances is malformed
	ReasonPrivateKeyMissing           = "PrivateKeyMissing" // Secret cloud-private-key does not exist
	ReasonPrivateKeyInvalid           = "PrivateKeyInvalid" // Secret cloud-private-key contains no usable private key
	ReasonClusterConfigurationInvalid = "ClusterConfigurationInvalid"
	ReasonAPIRequestFailed            = "APIRequestFailed"   // the API server rejected a request of the operator, or did not respond
	ReasonPayloadUnavailable          = "PayloadUnavailable" // the operator cannot read its own payload

	// Machines.
	ReasonMachineDeleting    = "MachineDeleting"    // the Machine API deletes the Machine
	ReasonMachineFailed      = "MachineFailed"      // the Machine is in phase Failed
	ReasonMachineIgnored     = "MachineIgnored"     // the Machine has the ignore label, or is no longer a Windows Machine
	ReasonUserDataInProgress = "UserDataInProgress" // the host does not accept the key yet: its user data is still being applied

	// Support.
	ReasonClusterVersionUnsupported = "ClusterVersionUnsupported"
	ReasonClusterVersionUntested    = "ClusterVersionUntested" // the cluster is newer than the versions that the operator was tested with
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
	ReasonCloudNameUnknown          = "CloudNameUnknown" // the cloud's metadata service does not return the machine's name
	ReasonCertificateRequestRefused = "CertificateRequestRefused"
	ReasonCertificateExpired        = "CertificateExpired"

	// Connectivity from the host to the cluster.
	ReasonAPIServerUnreachable = "APIServerUnreachable" // the host cannot resolve or reach the API server's internal name

	// Disruption of nodes in service: why a change waits.
	ReasonDisruptionsPaused        = "DisruptionsPaused"        // the WindowsDisruptionPolicy, or its entry for the pool, is paused
	ReasonDisruptionPolicyInvalid  = "DisruptionPolicyInvalid"  // the WindowsDisruptionPolicy is invalid
	ReasonOutsideMaintenanceWindow = "OutsideMaintenanceWindow" // no maintenance window is open
	ReasonMaxUnavailableReached    = "MaxUnavailableReached"    // maxUnavailable of the policy, or of the pool
	ReasonDisruptionInProgress     = "DisruptionInProgress"     // another disruption must finish first
	ReasonCanarySoaking            = "CanarySoaking"            // the first node has the version, and must remain Ready for some time
	ReasonCanaryFailed             = "CanaryFailed"             // the first node has failed with the version
	ReasonStoppedOnFailure         = "StoppedOnFailure"         // a node has failed, and stopOnFailure is set
	ReasonLastAvailableMachine     = "LastAvailableMachine"     // the last available Machine of its MachineSet
	ReasonReplacementPending       = "ReplacementPending"       // the Machine must be replaced
	ReasonChangeFailed             = "ChangeFailed"             // the last change failed, and the host was rolled back
	ReasonRollbackIncomplete       = "RollbackIncomplete"       // the last change failed, and the rollback failed or was impossible
	ReasonDrainTimedOut            = "DrainTimedOut"            // the drain timed out; the node accepts pods again

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
