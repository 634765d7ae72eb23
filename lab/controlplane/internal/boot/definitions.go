package boot

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// definitionsKey is the etcd prefix of the API server's CustomResourceDefinitions.
const definitionsKey = "/registry/apiextensions.k8s.io/customresourcedefinitions/"

// storeDefinitions stores missing definitions in the form in which an API server stores accepted and
// established definitions. Booting with definitions in etcd needs a fifth less processor time than creating the
// definitions over the API: the API server writes the OpenAPI documents once, and not again for each
// definition.
func storeDefinitions(ctx context.Context, etcd *embed.Etcd, definitions []*unstructured.Unstructured) error {
	client := v3client.New(etcd.Server)
	defer client.Close()
	for _, definition := range definitions {
		stored, err := encodeDefinition(ctx, definition)
		if err != nil {
			return fmt.Errorf("encode the definition %s: %w", definition.GetName(), err)
		}
		key := definitionsKey + definition.GetName()
		absent := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		if _, err := client.Txn(ctx).If(absent).Then(clientv3.OpPut(key, string(stored))).Commit(); err != nil {
			return fmt.Errorf("store the definition %s: %w", definition.GetName(), err)
		}
	}
	return nil
}

func encodeDefinition(ctx context.Context, definition *unstructured.Unstructured) ([]byte, error) {
	data, err := definition.MarshalJSON()
	if err != nil {
		return nil, err
	}
	crd := &apiextensions.CustomResourceDefinition{}
	if err := runtime.DecodeInto(apiserver.Codecs.UniversalDecoder(), data, crd); err != nil {
		return nil, err
	}
	customresourcedefinition.NewStrategy(apiserver.Scheme).PrepareForCreate(ctx, crd)
	rest.FillObjectMetaSystemFields(crd)
	crd.Status.AcceptedNames = crd.Spec.Names
	for _, condition := range []apiextensions.CustomResourceDefinitionCondition{
		{Type: apiextensions.NamesAccepted, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensions.Established, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	} {
		condition.Status = apiextensions.ConditionTrue
		apiextensions.SetCRDCondition(crd, condition)
	}
	return runtime.Encode(apiserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion), crd)
}
