package fleet

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// maxLeaseAge is the maximum time without a renewal of the operator's Lease: twice OpenShift's limit.
const maxLeaseAge = 5 * time.Minute

// OperatorInactivityWarning returns a warning if no operator is running in a namespace. It returns "" if an operator is
// running, or if its state cannot be determined: an operator with hosts and without a Lease was started without
// leader election.
func OperatorInactivityWarning(ctx context.Context, reader client.Reader, namespace string, hasHosts bool, now time.Time) string {
	lease := &coordinationv1.Lease{}
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.OperatorLease}, lease); {
	case apierrors.IsNotFound(err) && !hasHosts:
		return fmt.Sprintf("No operator is running in namespace %s: if it is installed in another namespace, specify that with -n.", namespace)
	case err != nil:
		return "" // the output does not depend on the Lease
	}
	return inactivityWarning(lease, now)
}

func inactivityWarning(lease *coordinationv1.Lease, now time.Time) string {
	renewed := lease.Spec.RenewTime
	if renewed == nil {
		return ""
	}
	ago := now.Sub(renewed.Time)
	if ptr.Deref(lease.Spec.HolderIdentity, "") != "" && ago < maxLeaseAge {
		return ""
	}
	return fmt.Sprintf("The output may be stale: no operator has been active for %s. See: kubectl get pods -n %s",
		duration.HumanDuration(max(0, ago)), lease.Namespace)
}
