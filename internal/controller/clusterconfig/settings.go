package clusterconfig

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

const (
	// reasonSettingUnsupported is the reason of the event for each setting of the cluster that Windows nodes do not
	// follow.
	reasonSettingUnsupported = "SettingUnsupported"
	// maxEventsPerRead is the maximum number of such events for one read of the cluster. The rest is only logged.
	maxEventsPerRead = 10
)

// reportSettings reports each setting that Windows nodes do not follow once: by an event on the operator's
// Deployment and a line in the log. Settings that are followed again or no longer exist are forgotten.
func (r *Reporter) reportSettings(ctx context.Context, notices []cluster.Notice) error {
	metrics.SettingsNotFollowed.Set(float64(len(notices)))
	r.settings.Begin()
	var fresh []cluster.Notice
	for _, notice := range notices {
		if r.settings.IsNew(withoutVersion(notice), "") {
			fresh = append(fresh, notice)
		}
	}
	r.settings.End()
	if len(fresh) == 0 {
		return nil
	}
	deployment, err := recorder.Operator(ctx, r.live, r.namespace)
	if err != nil {
		for _, notice := range fresh {
			r.settings.Forget(withoutVersion(notice))
		}
		return err
	}
	warn := func(related *corev1.ObjectReference, message string) {
		r.events.Eventf(deployment, related, corev1.EventTypeWarning, reasonSettingUnsupported,
			"FollowSettings", "%s", message)
	}
	for i, notice := range fresh {
		log.FromContext(ctx).Info("Windows nodes do not follow a setting of the cluster", "object", notice.Object, "field",
			notice.Field, "why", notice.Message)
		if i < maxEventsPerRead {
			warn(noticeReference(notice), notice.String())
		}
	}
	if more := len(fresh) - maxEventsPerRead; more > 0 {
		warn(&corev1.ObjectReference{Kind: "Deployment", Namespace: deployment.Namespace, Name: deployment.Name},
			fmt.Sprintf("Windows nodes do not follow %d more settings of the cluster; the log of Deployment %s names them.",
				more, deployment.Name))
	}
	return nil
}

// noticeReference returns the related object of an event besides the Deployment. The recording library merges events
// with the same reference and keeps the first text; the reference is therefore as specific as possible.
func noticeReference(notice cluster.Notice) *corev1.ObjectReference {
	kind, name, _ := strings.Cut(notice.Object, " ")
	namespace, short, found := strings.Cut(name, "/")
	if !found {
		namespace, short = "", name
	}
	return &corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: short, FieldPath: notice.Field,
		ResourceVersion: notice.ResourceVersion}
}

// withoutVersion returns the notice without the resource version: a new version of the object with the same notice
// is not reported again.
func withoutVersion(notice cluster.Notice) cluster.Notice {
	notice.ResourceVersion = ""
	return notice
}
