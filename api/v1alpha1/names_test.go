package v1alpha1

import "testing"

// Users, other programs and nodes of earlier releases know these names, so they are written out here. A changed name
// fails this test, although all code has the constant.
func TestNames_PublicNamesUnchanged(t *testing.T) {
	for _, c := range []struct{ constant, name string }{
		{LabelMachineOSID + "=" + MachineOSIDWindows, "machine.openshift.io/os-id=Windows"},
		{LabelIgnore, "windowsmachineconfig.openshift.io/ignore"},
		{MachineNamespace, "openshift-machine-api"},
		{LabelSource, "windowsmachineconfig.openshift.io/source"},
		{LabelBYOH, "windowsmachineconfig.openshift.io/byoh"},
		{LabelOSID, "node.openshift.io/os_id"},
		{LabelWorker, "node-role.kubernetes.io/worker"},
		{AnnotationVersion, "windowsmachineconfig.openshift.io/version"},
		{AnnotationPubKeyHash, "windowsmachineconfig.openshift.io/pub-key-hash"},
		{AnnotationInstance, "windowsmachineconfig.openshift.io/instance"},
		{AnnotationHostKey, "windowsmachineconfig.openshift.io/ssh-host-key"},
		{AnnotationHostKeyType, "windowsmachineconfig.openshift.io/ssh-host-key-type"},
		{AnnotationCordoned, "windowsmachineconfig.openshift.io/cordoned"},
		{AnnotationDrained, "windowsmachineconfig.openshift.io/drained"},
		{AnnotationAcceptHostKey, "windowsmachineconfig.openshift.io/accept-host-key"},
		{AnnotationExpectedHostKey, "windowsmachineconfig.openshift.io/expected-host-key"},
		{AnnotationForgetHost, "windowsmachineconfig.openshift.io/forget-host"},
		{AnnotationRebootRequired, "windowsmachineconfig.openshift.io/reboot-required"},
		{AnnotationRetry, "windowsmachineconfig.openshift.io/retry"},
		{AnnotationUpgradeStrategy, "windowsmachineconfig.openshift.io/upgrade-strategy"},
		{AnnotationExcludeDrain, "machine.openshift.io/exclude-node-draining"},
		{AnnotationDesiredVersion, "windowsmachineconfig.openshift.io/desired-version"},
		{AnnotationUsername, "windowsmachineconfig.openshift.io/username"},
		{AnnotationTakenOverFrom, "windowsmachineconfig.openshift.io/adopted-from"},
		{LabelUpgrading, "windowsmachineconfig.openshift.io/upgrading"},
		{AnnotationPodSubnet, "k8s.ovn.org/hybrid-overlay-node-subnet"},
		{TaintNotReady, "startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready"},
		{TaintNotReadyFormer, "windowsmachineconfig.openshift.io/not-ready"},
		{TaintWindows, "os"},
		{TaintUninitialized, "node.cloudprovider.kubernetes.io/uninitialized"},
		{OperatorLease, "windows-machine-config-operator"},
		{LabelManagedBy + "=" + OperatorName, "app.kubernetes.io/managed-by=windows-machine-config-operator"},
		{SourceMachine + " " + SourceConfigMap, "Machine ConfigMap"},
	} {
		if c.constant != c.name {
			t.Errorf("%s was renamed to %s", c.name, c.constant)
		}
	}
}
