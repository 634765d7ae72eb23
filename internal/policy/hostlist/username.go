package hostlist

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of Windows in characters, and of a WindowsInstance for the full user name. Sources: "User Name Formats",
// NetUserAdd, "Naming conventions in Active Directory" and the attribute User-Principal-Name, Microsoft.
const (
	maxAccountLength   = 20 // of the host, or pre-Windows 2000 name of a domain account
	maxDomainLength    = 15 // a domain's NetBIOS name
	maxPrincipalLength = 64 // the part before @ of a user principal name
	maxUsernameLength  = 104
)

// forbiddenInUsername are the characters that Windows refuses in account names. A backslash and @ separate a name
// from its domain. Source: "User Name Formats" and NetUserAdd, Microsoft.
const forbiddenInUsername = "\"/\\[]:;|=,+*?<>@"

// ValidateUsername accepts the account names of OpenSSH for Windows: a local account, DOMAIN\user, or user@domain. It
// refuses names that Windows refuses, and names that could be parsed as an option.
func ValidateUsername(username string) error {
	if n := utf8.RuneCountInString(username); n > maxUsernameLength {
		return fmt.Errorf("the user name has %d characters with its domain: %d are allowed", n, maxUsernameLength)
	}
	if domain, account, found := strings.Cut(username, `\`); found {
		if err := validateDomain(domain); err != nil {
			return err
		}
		return validateAccount(account, maxAccountLength)
	}
	if account, domain, found := strings.Cut(username, "@"); found {
		if !isDomainName(domain) {
			return fmt.Errorf("%q after the @ of the user name is not the DNS name of a domain", domain)
		}
		return validateAccount(account, maxPrincipalLength)
	}
	return validateAccount(username, maxAccountLength)
}

// validateDomain accepts the text before the backslash: the NetBIOS name or the DNS name of a domain.
func validateDomain(domain string) error {
	if isDomainName(domain) && strings.Contains(domain, ".") {
		return nil
	}
	if domain == "" || strings.HasPrefix(domain, ".") {
		return errors.New(`the domain before the backslash is missing or begins with a dot: a local account has no domain`)
	}
	return validateName("domain of the user name", domain, maxDomainLength)
}

func isDomainName(domain string) bool {
	return len(validation.IsDNS1123Subdomain(strings.ToLower(domain))) == 0
}

// validateAccount accepts the name of an account without its domain.
func validateAccount(name string, longest int) error {
	if name == "" {
		return errors.New("the user name is missing: the value must be username=<user>")
	}
	return validateName("user name", name, longest)
}

// validateName accepts the characters that Windows allows in names of accounts and of domains.
func validateName(what, name string, longest int) error {
	switch n := utf8.RuneCountInString(name); {
	case n > longest:
		return fmt.Errorf("the %s has %d characters: Windows allows %d", what, n, longest)
	case strings.HasPrefix(name, "-"), strings.HasPrefix(name, " "), strings.HasSuffix(name, " "),
		strings.HasSuffix(name, "."):
		return fmt.Errorf("the %s must not begin with '-' or a space, nor end with a space or '.'", what)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune(forbiddenInUsername, r) {
			return fmt.Errorf("the %s contains %q, which Windows does not allow there", what, r)
		}
	}
	return nil
}
