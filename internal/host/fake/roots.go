package fake

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// freshRoot is the subject with the digest that represents the certificates in the store of a fresh server.
const freshRoot = "a root certification authority that Windows comes with"

// rootStore is the machine's store of trusted roots, by fingerprint: the machine's own roots and the roots of
// policies. It is guarded by the machine's lock and persists across reboots.
type rootStore struct{ own, policies map[string]struct{} }

func newRootStore() rootStore {
	return rootStore{own: map[string]struct{}{fingerprintOf([]byte(freshRoot)): {}}, policies: map[string]struct{}{}}
}

func fingerprintOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func (s rootStore) listFingerprints() []string {
	all := maps.Clone(s.own)
	maps.Copy(all, s.policies)
	return slices.Sorted(maps.Keys(all))
}

// roots implements host.Roots for one process.
type roots struct{ p *Process }

func (r roots) Fingerprints(ctx context.Context) (list []string, err error) {
	err = r.p.runOperation(ctx, "Roots", "Fingerprints", "", func(m *Machine) error { list = m.roots.listFingerprints(); return nil })
	return list, err
}

func (r roots) Add(ctx context.Context, der []byte) error {
	of := fingerprintOf(der)
	return r.p.runOperation(ctx, "Roots", "Add", of, func(m *Machine) error {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("add a trusted root: %w: %w", errASN1, err)
		}
		if _, known := m.roots.own[of]; !known {
			m.roots.own[of] = struct{}{}
			r.p.recordEntry(KindRoot, "trust "+of+" "+certificate.Subject.String(), int64(len(der)))
		}
		return nil
	})
}

func (r roots) Remove(ctx context.Context, of string) error {
	return r.p.runOperation(ctx, "Roots", "Remove", of, func(m *Machine) error {
		if err := host.CheckFingerprint(of); err != nil {
			return fmt.Errorf("remove a trusted root: %w", err)
		}
		if _, known := m.roots.own[of]; known {
			delete(m.roots.own, of)
			r.p.recordEntry(KindRoot, "distrust "+of, 0)
		}
		if _, brought := m.roots.policies[of]; brought {
			return fmt.Errorf("remove a trusted root: a group policy provides %s: %w", of, host.ErrRefused)
		}
		return nil
	})
}

// TrustedRoots returns the fingerprints of the machine's trusted roots, sorted.
func (m *Machine) TrustedRoots() []string {
	m.lock()
	defer m.unlock()
	return m.roots.listFingerprints()
}

// TrustByPolicy makes a group policy add a certificate until withdraw is called. The store keeps the certificates of
// policies separate from the machine's own roots.
func (m *Machine) TrustByPolicy(der []byte) (withdraw func()) {
	of := fingerprintOf(der)
	m.lock()
	defer m.unlock()
	m.roots.policies[of] = struct{}{}
	return func() {
		m.lock()
		defer m.unlock()
		delete(m.roots.policies, of)
	}
}
