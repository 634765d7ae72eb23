package facts

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// gatherTrustedCertificates queries the Windows root store for the relevant authorities, if there are any.
func (g *gatherer) gatherTrustedCertificates(ctx context.Context) error {
	imported, err := g.importedCertificates(ctx)
	if err != nil {
		return err
	}
	named := plan.NamedCertificates(g.facts.Ledger, g.spec, imported)
	if len(named) == 0 {
		return nil
	}
	all, err := g.Host.Roots.Fingerprints(ctx)
	if err != nil {
		return fmt.Errorf("list the certificate authorities that the host trusts: %w", err)
	}
	present := map[string]bool{}
	for _, fingerprint := range all {
		present[strings.ToLower(fingerprint)] = true
	}
	g.facts.ImportedCertificates = imported
	for _, fingerprint := range named {
		if present[strings.ToLower(fingerprint)] {
			g.facts.TrustedCertificates = append(g.facts.TrustedCertificates, fingerprint)
		}
	}
	return nil
}

// importedCertificates returns the certificates that a legacy operator has added to the store, according to its own
// list.
func (g *gatherer) importedCertificates(ctx context.Context) ([]string, error) {
	fact, there := g.facts.Files[plan.LegacyImportedPath]
	if !there || fact.Directory || fact.LinkTarget != "" || fact.Size > maxImported {
		return nil, nil
	}
	data, err := hostutil.ReadFile(ctx, g.Host.Files, plan.LegacyImportedPath)
	if err != nil {
		return nil, err
	}
	return pemFingerprints(data), nil
}

// maxImported is the maximum size of a legacy operator's list of certificates. A list of all authorities on
// Linux has 250 KiB.
const maxImported = 4 << 20

// pemFingerprints returns the sorted fingerprints of the certificates in a bundle. Invalid certificates are
// skipped because no store can hold them.
func pemFingerprints(data []byte) []string {
	var fingerprints []string
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == identity.BlockCertificate {
			sum := sha256.Sum256(block.Bytes)
			fingerprints = append(fingerprints, hex.EncodeToString(sum[:]))
		}
	}
	slices.Sort(fingerprints)
	return slices.Compact(fingerprints)
}

// gatherRoutes queries Windows for the relevant routes, if there are any.
func (g *gatherer) gatherRoutes(ctx context.Context) error {
	named := plan.NamedRoutes(g.facts.Ledger, g.spec)
	if len(named) == 0 {
		return nil
	}
	all, err := g.Host.Routes.ViaDefault(ctx)
	if err != nil {
		return fmt.Errorf("list the routes of the default route's adapter: %w", err)
	}
	g.facts.NoDefaultRoute = len(all) == 0 // the list includes the default route
	for _, destination := range named {
		if slices.Contains(all, destination) {
			g.facts.Routes = append(g.facts.Routes, destination)
		}
	}
	return nil
}
