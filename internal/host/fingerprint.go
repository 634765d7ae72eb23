package host

import (
	"fmt"
	"strings"
)

// CheckFingerprint returns an error unless the fingerprint is a SHA-256 digest in lower-case hex, the form used by
// Roots.
func CheckFingerprint(fingerprint string) error {
	if len(fingerprint) != 64 || strings.Trim(fingerprint, "0123456789abcdef") != "" {
		return fmt.Errorf("%.80q is not a fingerprint of a certificate: it must be a SHA-256 digest in lower-case hex",
			fingerprint)
	}
	return nil
}
