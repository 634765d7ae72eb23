package agent

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// messenger brings the report on the host to the API server when there is news. Nothing waits for it: an attempt runs beside the repairs, and
// without an API server, a certificate or a right to write the report, everything else goes on.
type messenger struct {
	*agent
	log *serviceLog
	to  Patcher // nil: nobody is told

	found  finding
	sent   sentReport
	loaded bool // sent is what the file says

	under   *attempt  // nil while none is under way
	next    time.Time // not before which there is another
	pace    time.Duration
	last    time.Time // when a report was taken last
	failed  int       // attempts in a row
	trouble string    // with sending, as the log has it
}

// sentReport is the report that the API server has taken last. It is kept in a file, so that a service that starts again has no news.
type sentReport struct {
	URL string `json:"url"`
	// Serial is that of the certificate with which it was sent.
	Serial string `json:"serial"`
	finding
}

// attempt is one to bring a report to the API server.
type attempt struct {
	report sentReport
	answer chan answerTo
}

type answerTo struct {
	code int
	body []byte
	err  error
}

// note takes down what a comparison has come to.
func (m *messenger) note(ctx context.Context, o outcome) {
	if m.to == nil {
		return
	}
	m.load(ctx)
	m.found = m.found.next(o, m.version, m.clock.Now())
}

// load takes over what was sent before the service was started. What cannot be read was not.
func (m *messenger) load(ctx context.Context) {
	if m.loaded {
		return
	}
	m.loaded = true
	data, err := m.store.read(ctx, nodespec.ReportPath)
	if err != nil || json.Unmarshal(data, &m.sent) != nil {
		m.sent = sentReport{}
	}
	m.found = m.sent.finding
}

// look takes the answer to an attempt that has ended, and begins another if there is news and it is time.
func (m *messenger) look(ctx context.Context, spec nodespec.NodeSpec) {
	if m.under != nil {
		select {
		case answer := <-m.under.answer:
			m.take(ctx, answer)
		default:
			return
		}
	}
	if m.to == nil || spec.Reporting == nil || !m.found.known() || m.clock.Now().Before(m.next) {
		return
	}
	if m.found.Report.SpecDigest != spec.Digest() {
		return // the host was not compared with this spec yet
	}
	if m.hasNews(ctx, spec) {
		m.begin(ctx, spec)
	}
}

// hasNews tells whether there is something to tell. That the same is told with each new certificate brings back a report that was lost in the
// cluster: the agent may not look whether it is there.
func (m *messenger) hasNews(ctx context.Context, spec nodespec.NodeSpec) bool {
	if m.sent.URL != spec.Reporting.URL || !m.sent.Report.equals(m.found.Report) {
		return true
	}
	certificate, err := m.certificate(ctx, spec)
	return err == nil && certificate != nil && certificate.Leaf.SerialNumber.String() != m.sent.Serial
}

// begin sends the report as it is now. Certificate and authorities are read anew: both change while the service runs.
func (m *messenger) begin(ctx context.Context, spec nodespec.NodeSpec) {
	report := sentReport{URL: spec.Reporting.URL, finding: m.found}
	report.Report.Time = m.clock.Now().UTC().Truncate(time.Second)
	patch, err := m.patch(ctx, spec, report.Report)
	if err != nil || patch == nil {
		m.next = m.clock.Now().Add(DriftCheck) // the operator brings a certificate sooner or later
		if err != nil {
			m.tell(ctx, err)
		}
		return
	}
	report.Serial = patch.Certificate.Leaf.SerialNumber.String()
	m.under = &attempt{report: report, answer: make(chan answerTo, 1)}
	go func(to Patcher, answer chan<- answerTo) {
		ctx, cancel := context.WithTimeoutCause(ctx, LimitReport, fmt.Errorf("%s does not answer within %s", patch.URL, LimitReport))
		defer cancel()
		code, body, err := to.Patch(ctx, *patch)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		answer <- answerTo{code, body, err}
	}(m.to, m.under.answer)
}

// patch is the request; nil while the host has no certificate for it.
func (m *messenger) patch(ctx context.Context, spec nodespec.NodeSpec, report nodeReport) (*Patch, error) {
	certificate, err := m.certificate(ctx, spec)
	if err != nil || certificate == nil {
		return nil, err
	}
	authorities, err := m.store.read(ctx, spec.Reporting.CAFile)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]nodeReport{"status": report})
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return &Patch{URL: spec.Reporting.URL, Body: body, Authorities: authorities, Certificate: *certificate}, nil
}

// certificate is that of the identity that the report is written as; nil while there is none.
func (m *messenger) certificate(ctx context.Context, spec nodespec.NodeSpec) (*tls.Certificate, error) {
	for _, identity := range spec.Identities {
		if identity.Name != spec.Reporting.Identity {
			continue
		}
		current, err := m.current(ctx, identity)
		if err != nil || current == nil {
			return nil, err
		}
		if end := current.chain[0].NotAfter; !m.clock.Now().Before(end) {
			return nil, fmt.Errorf("the certificate of %s was good until %s; the operator renews it", identity.CommonName, end.UTC().Format(time.RFC3339))
		}
		certificate := &tls.Certificate{PrivateKey: current.key, Leaf: current.chain[0]}
		for _, each := range current.chain {
			certificate.Certificate = append(certificate.Certificate, each.Raw)
		}
		return certificate, nil
	}
	return nil, nil
}

// take takes the answer to the attempt.
func (m *messenger) take(ctx context.Context, answer answerTo) {
	report, now := m.under.report, m.clock.Now()
	m.under = nil
	if err := answer.failure(report.URL); err != nil {
		m.failed++
		m.next = now.Add(m.retry(answer.refused()))
		m.tell(ctx, err)
		return
	}
	m.tell(ctx, nil)
	if now.Sub(m.last) >= 2*ReportRetryMax {
		m.pace = 0
	}
	m.failed, m.last, m.pace = 0, now, min(max(2*m.pace, ReportPace), ReportRetryMax)
	m.next, m.sent = now.Add(m.pace), report
	data, err := json.Marshal(report)
	if err == nil {
		err = m.store.write(ctx, nodespec.ReportPath, data)
	}
	if err != nil {
		m.log.printf(ctx, "the report is sent again when the service starts again: %v", err)
	}
}

// retry is how long after a failure there is another attempt. One who may not write is seldom let soon, but a report that the operator is about
// to make is there in a moment. Attempts of many hosts are spread.
func (m *messenger) retry(refused bool) time.Duration {
	spread := m.fraction()
	if refused && m.failed > 1 {
		return ReportRetryMax + time.Duration(spread*float64(ReportRetryMax))
	}
	delay := ReportRetry
	for range m.failed - 1 {
		delay = min(2*delay, ReportRetryMax)
	}
	return delay/2 + time.Duration(spread*float64(delay/2))
}

// fraction is a random number in [0,1).
func (m *messenger) fraction() float64 {
	var random [4]byte
	if _, err := io.ReadFull(m.rand, random[:]); err != nil {
		return 0
	}
	return float64(binary.BigEndian.Uint32(random[:])) / (1 << 32)
}

// failure is why a report was not taken; nil when it was.
func (a answerTo) failure(url string) error {
	switch {
	case a.err != nil:
		return a.err
	case a.code/100 == 2:
		return nil
	}
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(a.body, &status) != nil || status.Message == "" {
		status.Message = http.StatusText(a.code)
	}
	return &refusal{url, a.code, bounded(status.Message, maxReportReason)}
}

// refused tells whether the API server was there and would answer the same soon after.
func (a answerTo) refused() bool {
	return a.err == nil && a.code != http.StatusTooManyRequests && a.code/100 != 5 && a.code != http.StatusConflict
}

// refusal is an answer of the API server that it has not taken the report.
type refusal struct {
	url     string
	code    int
	message string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %d: %s", r.url, r.code, r.message)
}

// tell writes into the log what is new about trouble with sending; nil for none.
func (m *messenger) tell(ctx context.Context, err error) {
	trouble := ""
	if refused := (&refusal{}); errors.As(err, &refused) {
		trouble = fmt.Sprint(refused.code)
	} else if err != nil {
		trouble = "failure" // its words may differ each time: they name a port
	}
	if trouble == m.trouble {
		return
	}
	m.trouble = trouble
	if err == nil {
		m.log.printf(ctx, "the API server has the report on this host again")
		return
	}
	m.log.printf(ctx, "the API server has not taken the report on this host; it is sent again, and nothing else depends on it: %v", err)
}

// end waits for the attempt that is under way, which the service's end has cut off.
func (m *messenger) end(ctx context.Context) {
	if m.under == nil {
		return
	}
	if answer := <-m.under.answer; answer.failure(m.under.report.URL) == nil {
		m.take(ctx, answer)
	}
}
