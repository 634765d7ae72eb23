package agent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestNodeCondition_FailedRequestsBackOff(t *testing.T) {
	t.Parallel()
	away := func(context.Context) (int, error) { return 0, errors.New("connection refused") }
	t.Run("by an API server that is away is sent less and less often, and the host is repaired all the same", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		n.setAnswer(away)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftPollInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
		before, patchesBefore := n.requestCounts()
		for begin := r.ticking.Now(); r.ticking.Since(begin) < 2*time.Hour; {
			r.passAnswered(timeouts.DriftCheckInterval)
		}
		requests, patches := n.requestCounts()
		if requests -= before; requests < 20 || requests > 60 || patches != patchesBefore {
			t.Errorf("%d requests within two hours, %d patches", requests, patches-patchesBefore)
		}
		if lines := strings.Count(r.readLog(), "connection refused"); lines != 1 {
			t.Errorf("the log has it %d times", lines)
		}
		n.setAnswer(nil)
		r.passUntil("the condition", func() bool { return strings.Contains(n.configCondition().Message, "StartService kube-proxy") })
		r.passUntil("the log", func() bool {
			return strings.Contains(r.readLog(), "accepts the Node's condition WindowsConfiguration again")
		})
	})
	t.Run("because the agent may not write it is sent seldom, and told once", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		n.setAnswer(func(context.Context) (int, error) { return http.StatusForbidden, nil })
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		before, _ := n.requestCounts()
		for begin := r.ticking.Now(); r.ticking.Since(begin) < 2*time.Hour; {
			r.passAnswered(timeouts.DriftCheckInterval)
		}
		if requests, _ := n.requestCounts(); requests-before < 10 || requests-before > 26 {
			t.Errorf("%d requests within two hours", requests-before)
		}
		if lines := strings.Count(r.readLog(), "returned status 403: the server is closed"); lines != 1 {
			t.Errorf("the log has it %d times: %s", lines, r.readLog())
		}
	})
	t.Run("because its Node is only just being made is sent again soon", func(t *testing.T) {
		t.Parallel()
		n := newNodeServer()
		n.setAnswer(func(context.Context) (int, error) { return http.StatusNotFound, nil })
		r := newNodeRig(t, func(r *rig) { r.api, r.validity = n, 30*24*time.Hour })
		r.mustResult(r.apply(withCondition(r.fullSpec())))
		r.passUntil("an attempt", func() bool { requests, _ := n.requestCounts(); return requests == 1 })
		n.setAnswer(nil)
		begin := r.ticking.Now()
		r.passUntil("the condition", func() bool { return n.configCondition().Status == corev1.ConditionTrue })
		if waited := r.ticking.Since(begin); waited > 2*timeouts.DriftCheckInterval {
			t.Errorf("that took %s", waited)
		}
	})
	t.Run("nor refused keeps nobody from repairing, nor the service from stopping", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		came := make(chan struct{}, 10)
		n.setAnswer(func(ctx context.Context) (int, error) { came <- struct{}{}; <-ctx.Done(); return 0, ctx.Err() })
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		for len(came) == 0 {
			r.advanceTime(timeouts.DriftPollInterval)
		}
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if service, _ := r.Service("kubelet"); service.State != host.ServiceRunning {
			t.Error("the kubelet does not run")
		}
		r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
		if service, _ := r.Service(nodespec.ServiceAgent); service.ExitCode != 0 {
			t.Errorf("exit code %d", service.ExitCode)
		}
	})
	t.Run("is not sent with a certificate that has expired, and the log says so once", func(t *testing.T) {
		t.Parallel()
		r, n, spec := newPublishingRig(t)
		before, _ := n.requestCounts()
		r.advanceTime(31 * 24 * time.Hour)
		for range 10 {
			r.passAnswered(timeouts.DriftCheckInterval)
		}
		if after, _ := n.requestCounts(); after > before+2 {
			t.Errorf("%d requests", after-before)
		}
		if lines := strings.Count(r.readLog(), "the certificate of "+spec.Identity.CommonName+" expired at"); lines != 1 {
			t.Errorf("the log has it %d times: %s", lines, r.readLog())
		}
	})
}
