package clusterconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
)

// newNotice returns a notice about a mirror of a set.
func newNotice(number int) cluster.Notice {
	return cluster.Notice{Object: "ImageDigestMirrorSet a", Field: fmt.Sprintf("spec.imageDigestMirrors[%d]", number),
		Message: "Not followed.", ResourceVersion: "1"}
}

// reportNotices reports the unsupported settings and returns the emitted events.
func (r *trial) reportNotices(t *testing.T, notices ...cluster.Notice) []string {
	t.Helper()
	if err := r.reportSettings(t.Context(), notices); err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for len(r.recorder.Events) > 0 {
		recorded = append(recorded, <-r.recorder.Events)
	}
	var written dto.Metric
	if err := metrics.SettingsNotFollowed.Write(&written); err != nil {
		t.Fatal(err)
	}
	if got := written.GetGauge().GetValue(); got != float64(len(notices)) {
		t.Errorf("the metric is %v, want %d", got, len(notices))
	}
	return recorded
}

// L-03
func TestReportSettings_UnsupportedSettingsReportedOnce(t *testing.T) {
	const first = "Warning SettingUnsupported ImageDigestMirrorSet a, spec.imageDigestMirrors[0]: Not followed."
	t.Run("each once", func(t *testing.T) {
		r := newTrial(t)
		expectEvents(t, r.reportNotices(t))
		expectEvents(t, r.reportNotices(t, newNotice(0)), first)
		expectEvents(t, r.reportNotices(t, newNotice(0)))
		expectEvents(t, r.reportNotices(t, newNotice(1), newNotice(0)),
			"Warning SettingUnsupported ImageDigestMirrorSet a, spec.imageDigestMirrors[1]")
	})
	t.Run("once when it was said twice", func(t *testing.T) {
		r := newTrial(t)
		if err := r.reportSettings(t.Context(), []cluster.Notice{newNotice(0), newNotice(0)}); err != nil ||
			len(r.recorder.Events) != 1 {
			t.Errorf("%d events, error %v", len(r.recorder.Events), err)
		}
	})
	t.Run("not again for another version of the object that says the same", func(t *testing.T) {
		r := newTrial(t)
		r.reportNotices(t, newNotice(0))
		later := newNotice(0)
		later.ResourceVersion = "2"
		expectEvents(t, r.reportNotices(t, later))
		later.Message = "Not followed either."
		expectEvents(t, r.reportNotices(t, later),
			"Warning SettingUnsupported ImageDigestMirrorSet a, spec.imageDigestMirrors[0]: Not followed either.")
	})
	t.Run("again after it was gone", func(t *testing.T) {
		r := newTrial(t)
		r.reportNotices(t, newNotice(0))
		expectEvents(t, r.reportNotices(t))
		expectEvents(t, r.reportNotices(t, newNotice(0)), first)
	})
	t.Run("ten of many, and how many more there are", func(t *testing.T) {
		r := newTrial(t)
		r.recorder.Events = make(chan string, 100)
		var many []cluster.Notice
		for i := range 2000 {
			many = append(many, newNotice(i))
		}
		got := r.reportNotices(t, many...)
		if len(got) != 11 || !strings.Contains(got[10], "1990 more settings") {
			t.Errorf("%d events: %q", len(got), got)
		}
		expectEvents(t, r.reportNotices(t, many...))
	})
	t.Run("later when the Deployment cannot be read now", func(t *testing.T) {
		r := newTrial(t)
		failure := errors.New("connection refused")
		r.live = interceptor.NewClient(r.client, interceptor.Funcs{Get: func(context.Context, client.WithWatch,
			client.ObjectKey, client.Object, ...client.GetOption) error {
			return failure
		}})
		if err := r.reportSettings(t.Context(), []cluster.Notice{newNotice(0)}); !errors.Is(err, failure) {
			t.Errorf("error is %v", err)
		}
		r.live = r.client
		expectEvents(t, r.reportNotices(t, newNotice(0)), first)
	})
}

func TestNoticeReference_RefersToObject(t *testing.T) {
	for object, want := range map[string]corev1.ObjectReference{
		"ImageTagMirrorSet a": {Kind: "ImageTagMirrorSet", Name: "a", FieldPath: "f", ResourceVersion: "7"},
		"Secret openshift-config/pull-secret": {Kind: "Secret", Namespace: "openshift-config", Name: "pull-secret",
			FieldPath: "f", ResourceVersion: "7"},
	} {
		if got := noticeReference(cluster.Notice{Object: object, Field: "f", ResourceVersion: "7"}); *got != want {
			t.Errorf("%s is %+v", object, got)
		}
	}
}
