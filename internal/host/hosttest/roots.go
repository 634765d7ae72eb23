package hosttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"regexp"
	"slices"
	"strings"
)

// testRoots are two certification authorities that were valid for one day in 2020 and have no existing private keys.
// Leaving them behind creates no trust.
const testRoots = `
-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIBATAKBggqhkjOPQQDAjAfMR0wGwYDVQQDExR3bWNvLWNv
bnRyYWN0LXJvb3QtYTAeFw0yMDAxMDEwMDAwMDBaFw0yMDAxMDIwMDAwMDBaMB8x
HTAbBgNVBAMTFHdtY28tY29udHJhY3Qtcm9vdC1hMFkwEwYHKoZIzj0CAQYIKoZI
zj0DAQcDQgAEfjg7R+oA85vA7CWk5nzFTXYJ+ZnQ6o2s11wA9ikVhC0Kl9P4B8v3
TjBvMeo2RYYx51c03ytkBOk6D6vsAP+9IKNCMEAwDgYDVR0PAQH/BAQDAgIEMA8G
A1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFALW6hja5BMfVMUCsVbG9iBO8zNYMAoG
CCqGSM49BAMCA0gAMEUCIHma0+/zaKN2f+4UjDtK2m4urQtktVCxI+dL1DgcKyn8
AiEApIWPP8x0LAHDg0+Ok9cv9NxfeM26FDPtvbcjEAgXEMc=
-----END CERTIFICATE-----
-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIBAjAKBggqhkjOPQQDAjAfMR0wGwYDVQQDExR3bWNvLWNv
bnRyYWN0LXJvb3QtYjAeFw0yMDAxMDEwMDAwMDBaFw0yMDAxMDIwMDAwMDBaMB8x
HTAbBgNVBAMTFHdtY28tY29udHJhY3Qtcm9vdC1iMFkwEwYHKoZIzj0CAQYIKoZI
zj0DAQcDQgAEXNw/WHqZs8BEzFPfpG2DE+ZyQ8nJCVJ0aDwa8Z/RMFpFmxu5b2aH
mUpPsUyc4JZURsscRlxRI/ZynEeh6XakJKNCMEAwDgYDVR0PAQH/BAQDAgIEMA8G
A1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFK9O2nf2enSHZOAnjGtDqbipmFDtMAoG
CCqGSM49BAMCA0gAMEUCIGjfrPzv5WqxF033V7wH21TNzt7rGVn39v5AjQe99Emv
AiEAjJGRa93ee0vS2E49/yBg0e51Mk8M3IjkSJ1kyrx8ejs=
-----END CERTIFICATE-----
`

func testCertificates() [][]byte {
	first, rest := pem.Decode([]byte(strings.TrimSpace(testRoots)))
	second, _ := pem.Decode(rest)
	return [][]byte{first.Bytes, second.Bytes}
}

// borrowRoots returns the two authorities, which are removed from the trusted roots at the end.
func (s *suite) borrowRoots() (a, b []byte) {
	certificates := testCertificates()
	for _, der := range certificates {
		s.atEnd(func(ctx context.Context) error { return s.Roots.Remove(ctx, fingerprintOf(der)) })
	}
	return certificates[0], certificates[1]
}

func fingerprintOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func (s *suite) listFingerprints() []string {
	list, err := s.Roots.Fingerprints(s.ctx)
	s.requireNoError(err)
	return list
}

// countTrusted returns the number of times that the certificate is in the store.
func (s *suite) countTrusted(der []byte) int {
	return len(slices.DeleteFunc(s.listFingerprints(), func(each string) bool { return each != fingerprintOf(der) }))
}

func rootsBehaviors() []Behavior {
	return []Behavior{
		{"Roots.Fingerprints", "each certificate of the store is listed once, as SHA-256 in lower-case hex", func(s *suite) {
			a, _ := s.borrowRoots()
			s.requireNoError(s.Roots.Add(s.ctx, a))
			list := s.listFingerprints()
			form := regexp.MustCompile(`^[0-9a-f]{64}$`)
			expectEqual(s, "first invalid fingerprint", slices.IndexFunc(list, func(each string) bool { return !form.MatchString(each) }), -1)
			expectEqual(s, "distinct fingerprints", len(slices.Compact(slices.Sorted(slices.Values(list)))), len(list))
		}},
		{"Roots.Add", "an added certificate is in the store once, even if added again", func(s *suite) {
			a, b := s.borrowRoots()
			before := s.listFingerprints()
			for range 2 {
				s.requireNoError(s.Roots.Add(s.ctx, a))
				expectEqual(s, "in the store", s.countTrusted(a), 1)
				expectEqual(s, "the other", s.countTrusted(b), 0)
				expectEqual(s, "certificates", len(s.listFingerprints()), len(before)+1)
			}
		}},
		{"Roots.Add", "invalid certificate data is rejected", func(s *suite) {
			a, _ := s.borrowRoots()
			before := s.listFingerprints()
			for _, bad := range [][]byte{nil, []byte("none"), a[:len(a)-1], append(slices.Clone(a), 0), []byte(testRoots)} {
				s.expectAnyError("certificate", s.Roots.Add(s.ctx, bad))
			}
			expectEqual(s, "certificates", len(s.listFingerprints()), len(before))
		}},
		{"Roots.Remove", "removing a certificate keeps the others, and removing it again is no error",
			func(s *suite) {
				a, b := s.borrowRoots()
				s.requireNoError(s.Roots.Add(s.ctx, a))
				s.requireNoError(s.Roots.Add(s.ctx, b))
				before := s.listFingerprints()
				for range 2 {
					s.requireNoError(s.Roots.Remove(s.ctx, fingerprintOf(a)))
					expectEqual(s, "in the store", s.countTrusted(a), 0)
					expectEqual(s, "the other", s.countTrusted(b), 1)
					expectEqual(s, "certificates", len(s.listFingerprints()), len(before)-1)
				}
			}},
		{"Roots.Remove", "an invalid fingerprint is rejected", func(s *suite) {
			a, _ := s.borrowRoots()
			s.requireNoError(s.Roots.Add(s.ctx, a))
			for _, bad := range []string{"", strings.ToUpper(fingerprintOf(a)), fingerprintOf(a)[:40], strings.Repeat("g", 64)} {
				s.expectAnyError("fingerprint", s.Roots.Remove(s.ctx, bad))
			}
			expectEqual(s, "in the store", s.countTrusted(a), 1)
		}},
	}
}
