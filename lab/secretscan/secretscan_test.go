package secretscan

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

const pair = "-----BEGIN CERTIFICATE-----\n" + public + "\n-----END CERTIFICATE-----\n" + private

const (
	public  = "cHVibGljcHVibGljcHVibGljcHVibGljcHVibGljcHVibGlj"
	header  = "MHcCAQEEIABC"
	secret  = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
	private = "-----BEGIN EC PRIVATE KEY-----\n" + header + secret + "\n" + public + "\n-----END EC PRIVATE KEY-----\n"
)

func TestSecrets_LeakedKeyFound(t *testing.T) {
	s := Secrets{}
	if err := s.AddPair("the key", []byte(pair)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"as it is":                    {private, true},
		"a line of it":                {"error: " + secret, true},
		"as a Secret holds it":        {base64.StdEncoding.EncodeToString([]byte(private)), true},
		"not what all keys have":      {header, false},
		"not the certificate with it": {public, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Contains(s.In([]byte(strings.Repeat("x", 100)+c.text)), "the key"); got != c.want {
				t.Errorf("found: %t", got)
			}
		})
	}
	if s.AddPair("no key", []byte(public)) == nil {
		t.Error("a file without a key is no error")
	}
}
