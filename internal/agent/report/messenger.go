package report

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/agent/logs"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Messenger publishes the condition WindowsConfiguration of the host's Node. It writes when the condition
// changes, and at intervals as a heartbeat for the operator. Attempts run in the background: without an API
// server, a certificate or a Node, everything else continues.
type Messenger struct {
	MessengerMeans
	log *logs.Own

	found finding
	// sent is the last condition accepted by the API server since the service was started; url is its
	// destination.
	sent nodeCondition
	url  string

	under   *attempt  // the current attempt, nil if there is none
	next    time.Time // earliest time of the next attempt
	pace    time.Duration
	changed time.Time // time of the last change accepted by the API server
	failed  int       // consecutive failed attempts
	trouble string    // the problem with sending that was logged last
}

// MessengerMeans are the dependencies of a Messenger.
type MessengerMeans struct {
	API     APIServer // nil: the condition is not published
	Files   host.Files
	Clock   clock.PassiveClock
	Rand    io.Reader
	Version string // of the agent
}

// NewMessenger returns a Messenger that logs when the API server does not accept the condition.
func NewMessenger(means MessengerMeans, log *logs.Own) *Messenger {
	return &Messenger{MessengerMeans: means, log: log}
}

// attempt is one attempt to send a condition to the API server.
type attempt struct {
	url       string
	condition nodeCondition
	// repairs is the number of repairs of the finding that the condition names.
	repairs int
	ended   chan error
}

// Note records the outcome of a comparison.
func (m *Messenger) Note(o Outcome) {
	m.found = m.found.next(o, m.Clock.Now())
}

// Look handles the end of an attempt, and starts another attempt if the condition has changed or a heartbeat is
// due.
func (m *Messenger) Look(ctx context.Context, spec nodespec.NodeSpec) {
	if m.under != nil {
		select {
		case err := <-m.under.ended:
			m.take(ctx, err)
		default:
			return
		}
	}
	now := m.Clock.Now()
	// Before the first comparison with this spec, the state of the host is unknown.
	if m.API == nil || spec.Reporting == nil || m.found.spec != spec.Digest() || now.Before(m.next) {
		return
	}
	wanted := m.found.condition(m.Version)
	age := now.Sub(m.sent.LastHeartbeatTime) // negative if the clock was ahead
	if m.url == spec.Reporting.URL && m.sent.same(wanted) && age >= 0 && age < timeouts.ConditionInterval {
		return
	}
	m.begin(ctx, spec, wanted)
}

// begin sends the condition. Certificate and authorities are reread because both change while the service runs.
func (m *Messenger) begin(ctx context.Context, spec nodespec.NodeSpec, wanted nodeCondition) {
	server, err := m.server(ctx, spec)
	if err != nil || server == nil {
		m.next = m.Clock.Now().Add(timeouts.DriftCheck) // the kubelet or the operator eventually installs a certificate
		if err != nil {
			m.tell(ctx, err)
		}
		return
	}
	wanted.LastHeartbeatTime = m.Clock.Now().UTC().Truncate(time.Second) // precision of the API
	m.under = &attempt{url: spec.Reporting.URL, condition: wanted, repairs: len(m.found.repairs), ended: make(chan error, 1)}
	go func(api APIServer, url string, ended chan<- error) {
		late := fmt.Errorf("%s does not answer within %s", url, timeouts.LimitCondition)
		ctx, cancel := context.WithTimeoutCause(ctx, timeouts.LimitCondition, late)
		defer cancel()
		err := publish(ctx, api, *server, url, wanted)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		ended <- err
	}(m.API, spec.Reporting.URL, m.under.ended)
}

// server returns the credentials for the API server, or nil if the host has no certificate.
func (m *Messenger) server(ctx context.Context, spec nodespec.NodeSpec) (*Credentials, error) {
	certificate, err := m.certificate(ctx, spec.Identity)
	if err != nil || certificate == nil {
		return nil, err
	}
	authorities, err := hostutil.ReadFile(ctx, m.Files, spec.Reporting.CAFile)
	if err != nil {
		return nil, err
	}
	return &Credentials{Authorities: authorities, Certificate: *certificate}, nil
}

// certificate returns the kubelet's certificate with its key, or nil if there is none.
func (m *Messenger) certificate(ctx context.Context, of nodespec.Identity) (*tls.Certificate, error) {
	current, err := identity.Current(ctx, m.Files, of)
	if err != nil || current == nil {
		return nil, err
	}
	if end := current.Chain[0].NotAfter; !m.Clock.Now().Before(end) {
		return nil, fmt.Errorf("the certificate of %s was valid until %s", of.CommonName, end.UTC().Format(time.RFC3339))
	}
	certificate := &tls.Certificate{PrivateKey: current.Key, Leaf: current.Chain[0]}
	for _, each := range current.Chain {
		certificate.Certificate = append(certificate.Certificate, each.Raw)
	}
	return certificate, nil
}

// take handles the end of the attempt.
func (m *Messenger) take(ctx context.Context, err error) {
	ended, now := m.under, m.Clock.Now()
	m.under = nil
	m.tell(ctx, err)
	if err != nil {
		m.failed++
		m.next = now.Add(m.retry(isRefused(err)))
		return
	}
	change := m.url != ended.url || !m.sent.same(ended.condition)
	m.failed, m.url, m.sent, m.found = 0, ended.url, ended.condition, m.found.told(ended.repairs)
	if !change {
		return
	}
	if now.Sub(m.changed) >= 2*timeouts.ConditionInterval {
		m.pace = 0
	}
	m.pace = min(max(2*m.pace, timeouts.ConditionPace), timeouts.ConditionInterval)
	m.changed, m.next = now, now.Add(m.pace)
}

// retry returns the delay after a failure. A refused agent is seldom accepted soon, but a missing Node may be
// created shortly. Attempts of many hosts are spread.
func (m *Messenger) retry(refused bool) time.Duration {
	if refused && m.failed > 1 {
		return timeouts.ConditionInterval + m.fractionOf(timeouts.ConditionInterval)
	}
	delay := min(timeouts.ConditionRetry<<min(m.failed-1, 8), timeouts.ConditionInterval)
	return delay/2 + m.fractionOf(delay/2)
}

// fractionOf returns a random duration that is shorter than d.
func (m *Messenger) fractionOf(d time.Duration) time.Duration {
	n, err := rand.Int(m.Rand, big.NewInt(int64(d)))
	if err != nil {
		return 0
	}
	return time.Duration(n.Int64())
}

// tell logs changes of the problem with sending; a nil error means that the problem is resolved.
func (m *Messenger) tell(ctx context.Context, err error) {
	trouble := ""
	if refused := (&refusal{}); errors.As(err, &refused) {
		trouble = fmt.Sprint(refused.code)
	} else if err != nil {
		trouble = "failure" // the message may vary: it names a port
	}
	if trouble == m.trouble {
		return
	}
	m.trouble = trouble
	if err == nil {
		m.log.Printf(ctx, "the API server accepts the Node's condition %s again", nodespec.ConditionConfiguration)
		return
	}
	m.log.Printf(ctx, "the API server has not accepted the Node's condition %s; the agent retries, and nothing else depends on it: %v",
		nodespec.ConditionConfiguration, err)
}

// End waits for the current attempt, which the stop of the service has canceled. The next start detects the
// result.
func (m *Messenger) End(ctx context.Context) {
	if m.under != nil {
		m.take(ctx, <-m.under.ended)
	}
}
