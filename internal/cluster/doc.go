// Package cluster is a client of an API server, based on client-go. It reads many objects of
// many kinds at once, and reads and changes single objects.
//
// [Client] only reads. If the API server does not permit or serve an object, the result is an
// observation of this object, not an error; only an unreachable cluster is an error. If several
// objects of a kind are requested, the client lists objects with quayside's label in pages, and
// fetches objects that are missing from the list by name. The number of concurrent requests is
// limited. The content of Secrets and ConfigMaps is not fetched. Credentials of the kubeconfig
// are sent only to its server, and appear in no message.
//
// [Writer] changes objects, for quayside adopt run. No other code sends write requests to an
// API server.
//
// Start from [Open], [Client.Read], [Client.List] and [NewWriter].
package cluster
