//go:build windows

package windows

import (
	"context"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// roots is host.Roots on the certificate store API of crypt32.dll. The system store Root of the machine is a collection
// of physical stores: the machine's own (.Default, in the registry), and those that Windows Update (.AuthRoot), group
// policies (.GroupPolicy) and Active Directory (.Enterprise) bring. The collection (CERT_STORE_PROV_SYSTEM) says what
// is trusted. Changes are made in the machine's own only, which CERT_STORE_PROV_SYSTEM_REGISTRY opens: the others are
// not ours, and bring back what is deleted there. Programs that verify certificates with Windows, as Go's do, look at
// the store again after each change.
type roots struct{}

const (
	rootStoreName = "ROOT"
	encoding      = windows.X509_ASN_ENCODING | windows.PKCS_7_ASN_ENCODING

	allRoots = windows.CERT_STORE_PROV_SYSTEM_W          // the collection
	ownRoots = windows.CERT_STORE_PROV_SYSTEM_REGISTRY_W // the machine's own part of it
)

func (roots) Fingerprints(ctx context.Context) ([]string, error) {
	list, err := detached(ctx, trustedRoots)
	if err != nil {
		return nil, fmt.Errorf("list the trusted roots: %w", err)
	}
	return list, nil
}

func (roots) Add(ctx context.Context, der []byte) error {
	err := await(ctx, func() error {
		return inRootStore(ownRoots, func(store windows.Handle) error { return addRoot(store, der) })
	})
	if err != nil {
		return fmt.Errorf("add a trusted root: %w", err)
	}
	return nil
}

func (roots) Remove(ctx context.Context, fingerprint string) error {
	err := host.CheckFingerprint(fingerprint)
	if err == nil {
		err = await(ctx, func() error { return distrust(fingerprint) })
	}
	if err != nil {
		return fmt.Errorf("remove a trusted root: %w", err)
	}
	return nil
}

// distrust takes a certificate out of the machine's own store, and looks whether that was all that brings it.
func distrust(fingerprint string) error {
	if err := inRootStore(ownRoots, func(store windows.Handle) error {
		return removeRoot(store, fingerprint)
	}); err != nil {
		return err
	}
	left, err := trustedRoots()
	if err != nil {
		return fmt.Errorf("check whether certificate %s is still trusted: %w", fingerprint, err)
	}
	if slices.Contains(left, fingerprint) {
		return fmt.Errorf("certificate %s is no longer in the machine's own store, but a group policy, Active Directory or Windows Update adds it as well: %w",
			fingerprint, host.ErrRefused)
	}
	return nil
}

// trustedRoots returns the fingerprints of all certificates of the collection, sorted.
func trustedRoots() (list []string, err error) {
	err = inRootStore(allRoots, func(store windows.Handle) error {
		return eachCertificate(store, func(certificate *windows.CertContext) error {
			list = append(list, fingerprintOf(certificate))
			return nil
		})
	})
	slices.Sort(list)
	return slices.Compact(list), err
}

// inRootStore opens the store, all of it or the machine's own part, for one use. Without a cache, what others have
// changed meanwhile is seen.
func inRootStore(provider uintptr, use func(store windows.Handle) error) error {
	name, err := windows.UTF16PtrFromString(rootStoreName)
	if err != nil {
		return err
	}
	store, err := windows.CertOpenStore(provider, 0, 0, windows.CERT_SYSTEM_STORE_LOCAL_MACHINE,
		uintptr(unsafe.Pointer(name)))
	if err != nil {
		return fmt.Errorf("open the machine's certificate store %s: %w", rootStoreName, translate(err))
	}
	if err = use(store); err == nil {
		commit(store)
	}
	if closeErr := windows.CertCloseStore(store, 0); err == nil && closeErr != nil {
		err = fmt.Errorf("close the machine's certificate store %s: %w", rootStoreName, translate(closeErr))
	}
	return err
}

// commit writes what was changed at once (CertControlStore with CERT_STORE_CTRL_COMMIT). Closing the store does so too,
// but only with the last context of one of its certificates. A store that writes by itself calls it an error, and is
// right.
func commit(store windows.Handle) {
	const writeAll = 3
	_, _, _ = windows.NewLazySystemDLL("crypt32.dll").NewProc("CertControlStore").Call(uintptr(store), 0, writeAll, 0)
}

// eachCertificate goes through the store. The context is the walk's own: who keeps it must duplicate it.
func eachCertificate(store windows.Handle, visit func(*windows.CertContext) error) error {
	var certificate *windows.CertContext
	for {
		next, err := windows.CertEnumCertificatesInStore(store, certificate) // frees the one before
		if next == nil || err != nil {
			return endOfStore(err)
		}
		if certificate = next; certificate.Length == 0 {
			continue
		}
		if err := visit(certificate); err != nil {
			_ = windows.CertFreeCertificateContext(certificate) // cannot fail
			return err
		}
	}
}

// endOfStore tells the end of a walk from a failure.
func endOfStore(err error) error {
	if err == nil || errors.Is(err, windows.Errno(windows.CRYPT_E_NOT_FOUND)) ||
		errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil
	}
	return translate(err)
}

func fingerprintOf(certificate *windows.CertContext) string {
	sum := sha256.Sum256(unsafe.Slice(certificate.EncodedCert, certificate.Length))
	return hex.EncodeToString(sum[:])
}

func addRoot(store windows.Handle, der []byte) error {
	// Windows takes the first certificate and leaves what follows it.
	if rest, err := asn1.Unmarshal(der, new(asn1.RawValue)); err != nil || len(rest) > 0 {
		return errors.New("it is not a certificate in DER, or more than one")
	}
	certificate, err := windows.CertCreateCertificateContext(encoding, &der[0], uint32(len(der)))
	if err != nil {
		return fmt.Errorf("it is not a certificate in DER: %w", err)
	}
	defer func() { _ = windows.CertFreeCertificateContext(certificate) }() // cannot fail
	return translate(windows.CertAddCertificateContextToStore(store, certificate, windows.CERT_STORE_ADD_USE_EXISTING,
		nil))
}

// removeRoot deletes the certificate from the store. It is found first, and deleted when the walk is over.
func removeRoot(store windows.Handle, fingerprint string) error {
	var found []*windows.CertContext
	err := eachCertificate(store, func(certificate *windows.CertContext) error {
		if fingerprintOf(certificate) == fingerprint {
			found = append(found, windows.CertDuplicateCertificateContext(certificate))
		}
		return nil
	})
	for _, certificate := range found {
		if deleteErr := windows.CertDeleteCertificateFromStore(certificate); deleteErr != nil && err == nil { // frees it in any case
			err = fmt.Errorf("certificate %s: %w", fingerprint, translate(deleteErr))
		}
	}
	return err
}
