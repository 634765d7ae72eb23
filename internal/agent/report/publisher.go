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

// Publisher publishes the condition WindowsConfiguration of the host's Node. It writes when the condition
// changes, and at intervals as a heartbeat for the operator. Attempts run in the background: without an API
// server, a certificate or a Node, everything else continues.
type Publisher struct {
	PublisherDependencies
	log *logs.ServiceLog

	found finding
	// sent is the last condition accepted by the API server since the service was started; url is its
	// destination.
	sent nodeCondition
	url  string

	current       *attempt  // the current attempt, nil if there is none
	next          time.Time // earliest time of the next attempt
	changeDelay   time.Duration
	changed       time.Time // time of the last change accepted by the API server
	failed        int       // consecutive failed attempts
	loggedProblem string    // the problem with sending that was logged last
}

// PublisherDependencies are the dependencies of a Publisher.
type PublisherDependencies struct {
	API     APIServer // nil: the condition is not published
	Files   host.Files
	Clock   clock.PassiveClock
	Rand    io.Reader
	Version string // of the agent
}

// NewPublisher returns a Publisher that logs when the API server does not accept the condition.
func NewPublisher(means PublisherDependencies, log *logs.ServiceLog) *Publisher {
	return &Publisher{PublisherDependencies: means, log: log}
}

// attempt is one attempt to send a condition to the API server.
type attempt struct {
	url       string
	condition nodeCondition
	// repairs is the number of repairs of the finding that the condition names.
	repairs int
	ended   chan error
}

// RecordOutcome records the outcome of a comparison.
func (m *Publisher) RecordOutcome(o Outcome) {
	m.found = m.found.withOutcome(o, m.Clock.Now())
}

// PublishIfDue handles the end of an attempt, and starts another attempt if the condition has changed or a heartbeat is
// due.
func (m *Publisher) PublishIfDue(ctx context.Context, spec nodespec.NodeSpec) {
	if m.current != nil {
		select {
		case err := <-m.current.ended:
			m.finishAttempt(ctx, err)
		default:
			return
		}
	}
	now := m.Clock.Now()
	// Before the first comparison with this spec, the state of the host is unknown.
	if m.API == nil || spec.Reporting == nil || m.found.spec != spec.Digest() || now.Before(m.next) {
		return
	}
	wanted := m.found.toCondition(m.Version)
	age := now.Sub(m.sent.LastHeartbeatTime) // negative if the clock was ahead
	if m.url == spec.Reporting.URL && m.sent.hasSameState(wanted) && age >= 0 && age < timeouts.ConditionInterval {
		return
	}
	m.startAttempt(ctx, spec, wanted)
}

// startAttempt starts to send the condition. The certificate and the authorities are read again because both change
// while the service runs.
func (m *Publisher) startAttempt(ctx context.Context, spec nodespec.NodeSpec, wanted nodeCondition) {
	server, err := m.readCredentials(ctx, spec)
	if err != nil || server == nil {
		m.next = m.Clock.Now().Add(timeouts.DriftCheckInterval) // the kubelet or the operator eventually installs a certificate
		if err != nil {
			m.logFailure(ctx, err)
		}
		return
	}
	wanted.LastHeartbeatTime = m.Clock.Now().UTC().Truncate(time.Second) // precision of the API
	m.current = &attempt{url: spec.Reporting.URL, condition: wanted, repairs: len(m.found.repairs), ended: make(chan error, 1)}
	go func(api APIServer, url string, ended chan<- error) {
		late := fmt.Errorf("%s did not respond within %s", url, timeouts.ConditionTimeout)
		ctx, cancel := context.WithTimeoutCause(ctx, timeouts.ConditionTimeout, late)
		defer cancel()
		err := publishCondition(ctx, api, *server, url, wanted)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		ended <- err
	}(m.API, spec.Reporting.URL, m.current.ended)
}

// readCredentials returns the credentials for the API server, or nil if the host has no certificate.
func (m *Publisher) readCredentials(ctx context.Context, spec nodespec.NodeSpec) (*Credentials, error) {
	certificate, err := m.readCertificate(ctx, spec.Identity)
	if err != nil || certificate == nil {
		return nil, err
	}
	authorities, err := hostutil.ReadFile(ctx, m.Files, spec.Reporting.CAFile)
	if err != nil {
		return nil, err
	}
	return &Credentials{Authorities: authorities, Certificate: *certificate}, nil
}

// readCertificate returns the kubelet's certificate with its key, or nil if there is none.
func (m *Publisher) readCertificate(ctx context.Context, of nodespec.Identity) (*tls.Certificate, error) {
	current, err := identity.Current(ctx, m.Files, of)
	if err != nil || current == nil {
		return nil, err
	}
	if end := current.Chain[0].NotAfter; !m.Clock.Now().Before(end) {
		return nil, fmt.Errorf("the certificate of %s expired at %s", of.CommonName, end.UTC().Format(time.RFC3339))
	}
	certificate := &tls.Certificate{PrivateKey: current.Key, Leaf: current.Chain[0]}
	for _, each := range current.Chain {
		certificate.Certificate = append(certificate.Certificate, each.Raw)
	}
	return certificate, nil
}

// finishAttempt handles the end of the attempt.
func (m *Publisher) finishAttempt(ctx context.Context, err error) {
	ended, now := m.current, m.Clock.Now()
	m.current = nil
	m.logFailure(ctx, err)
	if err != nil {
		m.failed++
		m.next = now.Add(m.retryDelay(isRefused(err)))
		return
	}
	change := m.url != ended.url || !m.sent.hasSameState(ended.condition)
	m.failed, m.url, m.sent, m.found = 0, ended.url, ended.condition, m.found.withoutReported(ended.repairs)
	if !change {
		return
	}
	if now.Sub(m.changed) >= 2*timeouts.ConditionInterval {
		m.changeDelay = 0
	}
	m.changeDelay = min(max(2*m.changeDelay, timeouts.MinConditionInterval), timeouts.ConditionInterval)
	m.changed, m.next = now, now.Add(m.changeDelay)
}

// retryDelay returns the delay after a failure. A refused agent is seldom accepted soon, but a missing Node may be
// created shortly. Attempts of many hosts are spread.
func (m *Publisher) retryDelay(refused bool) time.Duration {
	if refused && m.failed > 1 {
		return timeouts.ConditionInterval + m.fractionOf(timeouts.ConditionInterval)
	}
	delay := min(timeouts.ConditionRetryDelay<<min(m.failed-1, 8), timeouts.ConditionInterval)
	return delay/2 + m.fractionOf(delay/2)
}

// fractionOf returns a random duration that is shorter than d.
func (m *Publisher) fractionOf(d time.Duration) time.Duration {
	n, err := rand.Int(m.Rand, big.NewInt(int64(d)))
	if err != nil {
		return 0
	}
	return time.Duration(n.Int64())
}

// logFailure logs changes of the problem with sending; a nil error means that the problem is resolved.
func (m *Publisher) logFailure(ctx context.Context, err error) {
	trouble := ""
	if refused := (&refusal{}); errors.As(err, &refused) {
		trouble = fmt.Sprint(refused.code)
	} else if err != nil {
		trouble = "failure" // the message may vary: it names a port
	}
	if trouble == m.loggedProblem {
		return
	}
	m.loggedProblem = trouble
	if err == nil {
		m.log.Printf(ctx, "the API server accepts the Node's condition %s again", nodespec.ConditionConfiguration)
		return
	}
	m.log.Printf(ctx, "the API server did not accept the Node's condition %s; the agent retries: %v",
		nodespec.ConditionConfiguration, err)
}

// End waits for the current attempt, which the stop of the service has canceled. The next start detects the
// result.
func (m *Publisher) End(ctx context.Context) {
	if m.current != nil {
		m.finishAttempt(ctx, <-m.current.ended)
	}
}
