package windows

import (
	"errors"
	"fmt"

	"github.com/go-ole/go-ole"
)

// forEachItem calls visit for each item of a collection of COM objects, and releases the item afterwards. A
// collection that cannot be read completely is an error, unlike in oleutil.ForEach, which treats a failure of
// IEnumVARIANT.Next as the end of the list. The function describe adds the meaning of a code to a COM error.
//
//	collection: get _NewEnum (DISPID_NEWENUM): VT_UNKNOWN or VT_DISPATCH that has IEnumVARIANT
//	HRESULT IEnumVARIANT::Next(ULONG celt, VARIANT *rgVar, ULONG *pCeltFetched)
func forEachItem(collection *ole.IDispatch, describe func(error) error, visit func(item *ole.VARIANT) error) error {
	items, err := openEnumerator(collection)
	if err != nil {
		return fmt.Errorf("open the list: %w", describe(err))
	}
	defer items.Release()
	for read := 0; ; read++ {
		outcome, failure, err := readNextItem(items, visit)
		switch {
		case failure != nil:
			return fmt.Errorf("read the list after %d items: %w", read, describe(failure))
		case err != nil || outcome != itemFetched:
			return err
		}
	}
}

// readNextItem reads the next item and calls visit with it. A failure of the list and an error of visit are returned
// separately.
func readNextItem(items *ole.IEnumVARIANT, visit func(item *ole.VARIANT) error) (_ nextOutcome, failure, _ error) {
	item, fetched, failure := items.Next(1)
	defer item.Clear() //nolint:errcheck // only a reference
	outcome := classifyNext(nextStatus(failure), fetched)
	switch outcome {
	case itemFetched, lastFetched:
		return outcome, nil, visit(&item)
	case listTruncated:
		if failure == nil {
			failure = errors.New("the list returns neither an item nor its end")
		}
		return outcome, failure, nil
	}
	return outcome, nil, nil
}

// nextStatus returns the HRESULT of IEnumVARIANT.Next. go-ole returns every status except S_OK as an error.
func nextStatus(err error) uint32 {
	var failure *ole.OleError
	if errors.As(err, &failure) {
		return uint32(failure.Code())
	}
	return statusOK
}

// openEnumerator returns the enumerator of a collection. The caller must release it.
func openEnumerator(collection *ole.IDispatch) (*ole.IEnumVARIANT, error) {
	value, err := collection.GetProperty("_NewEnum")
	if err != nil {
		return nil, err
	}
	defer value.Clear() //nolint:errcheck // only a reference
	object := value.ToIUnknown()
	if dispatch := value.ToIDispatch(); object == nil && dispatch != nil {
		object = &dispatch.IUnknown
	}
	if object == nil {
		return nil, fmt.Errorf("property _NewEnum is a value of type %d instead of an object", value.VT)
	}
	return object.IEnumVARIANT(ole.IID_IEnumVariant)
}
