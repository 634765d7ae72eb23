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

// roots implements host.Roots with the certificate store API of crypt32.dll. The system store Root of the machine is
// a collection of physical stores: the machine's own store (.Default, in the registry), and the stores of Windows
// Update (.AuthRoot), group policies (.GroupPolicy) and Active Directory (.Enterprise). The collection
// (CERT_STORE_PROV_SYSTEM) determines the trusted certificates. Changes apply only to the machine's own store, which
// CERT_STORE_PROV_SYSTEM_REGISTRY opens: the other stores do not belong to the operator, and their sources restore
// deleted certificates. Programs that verify certificates with Windows, such as Go programs, read the store again
// after each change.
type roots struct{}

const (
	rootStoreName = "ROOT"
	encoding      = windows.X509_ASN_ENCODING | windows.PKCS_7_ASN_ENCODING

	allRoots = windows.CERT_STORE_PROV_SYSTEM_W          // the collection
	ownRoots = windows.CERT_STORE_PROV_SYSTEM_REGISTRY_W // the machine's own part of the collection
)

func (roots) Fingerprints(ctx context.Context) ([]string, error) {
	list, err := callDetached(ctx, trustedRoots)
	if err != nil {
		return nil, fmt.Errorf("list the trusted roots: %w", err)
	}
	return list, nil
}

func (roots) Add(ctx context.Context, der []byte) error {
	err := runDetached(ctx, func() error {
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
		err = runDetached(ctx, func() error { return distrustRoot(fingerprint) })
	}
	if err != nil {
		return fmt.Errorf("remove a trusted root: %w", err)
	}
	return nil
}

// distrustRoot removes a certificate from the machine's own store and checks whether another store still provides it.
func distrustRoot(fingerprint string) error {
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
		return fmt.Errorf("certificate %s is no longer in the machine's own store, but a group policy, Active Directory or Windows Update also provides the certificate: %w",
			fingerprint, host.ErrRefused)
	}
	return nil
}

// trustedRoots returns the sorted fingerprints of all certificates in the collection.
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

// inRootStore opens the collection or the machine's own store for one use. Because the store is not cached, changes
// by other programs are visible.
func inRootStore(provider uintptr, use func(store windows.Handle) error) error {
	name, err := windows.UTF16PtrFromString(rootStoreName)
	if err != nil {
		return err
	}
	store, err := windows.CertOpenStore(provider, 0, 0, windows.CERT_SYSTEM_STORE_LOCAL_MACHINE,
		uintptr(unsafe.Pointer(name)))
	if err != nil {
		return fmt.Errorf("open the machine's certificate store %s: %w", rootStoreName, translateError(err))
	}
	if err = use(store); err == nil {
		commit(store)
	}
	if closeErr := windows.CertCloseStore(store, 0); err == nil && closeErr != nil {
		err = fmt.Errorf("close the machine's certificate store %s: %w", rootStoreName, translateError(closeErr))
	}
	return err
}

// commit writes changes immediately (CertControlStore with CERT_STORE_CTRL_COMMIT). Closing the store also writes
// changes, but only after the last context of its certificates is freed. Stores that write automatically return an
// error, which is ignored.
func commit(store windows.Handle) {
	const writeAll = 3
	_, _, _ = windows.NewLazySystemDLL("crypt32.dll").NewProc("CertControlStore").Call(uintptr(store), 0, writeAll, 0)
}

// eachCertificate calls visit for each certificate in the store. The iteration owns the context, so visit must
// duplicate a context to keep it.
func eachCertificate(store windows.Handle, visit func(*windows.CertContext) error) error {
	var certificate *windows.CertContext
	for {
		next, err := windows.CertEnumCertificatesInStore(store, certificate) // frees the previous context
		if next == nil || err != nil {
			return ignoreEndOfStore(err)
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

// ignoreEndOfStore returns nil at the end of an iteration, and other errors translated.
func ignoreEndOfStore(err error) error {
	if err == nil || errors.Is(err, windows.Errno(windows.CRYPT_E_NOT_FOUND)) ||
		errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil
	}
	return translateError(err)
}

func fingerprintOf(certificate *windows.CertContext) string {
	sum := sha256.Sum256(unsafe.Slice(certificate.EncodedCert, certificate.Length))
	return hex.EncodeToString(sum[:])
}

func addRoot(store windows.Handle, der []byte) error {
	// Windows uses the first certificate and ignores the data behind it.
	if rest, err := asn1.Unmarshal(der, new(asn1.RawValue)); err != nil || len(rest) > 0 {
		return errors.New("the data is not exactly one DER certificate")
	}
	certificate, err := windows.CertCreateCertificateContext(encoding, &der[0], uint32(len(der)))
	if err != nil {
		return fmt.Errorf("parse the DER certificate: %w", err)
	}
	defer func() { _ = windows.CertFreeCertificateContext(certificate) }() // cannot fail
	return translateError(windows.CertAddCertificateContextToStore(store, certificate, windows.CERT_STORE_ADD_USE_EXISTING,
		nil))
}

// removeRoot deletes a certificate from the store after the iteration that finds it. The deletion always frees the
// context.
func removeRoot(store windows.Handle, fingerprint string) error {
	var found []*windows.CertContext
	err := eachCertificate(store, func(certificate *windows.CertContext) error {
		if fingerprintOf(certificate) == fingerprint {
			found = append(found, windows.CertDuplicateCertificateContext(certificate))
		}
		return nil
	})
	for _, certificate := range found {
		if deleteErr := windows.CertDeleteCertificateFromStore(certificate); deleteErr != nil && err == nil {
			err = fmt.Errorf("certificate %s: %w", fingerprint, translateError(deleteErr))
		}
	}
	return err
}
